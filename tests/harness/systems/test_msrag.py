"""MSRAG's system: three answers from three sources, one of them chosen.

Lost sources, costs, notes, and what `ask` prints of it.
"""

import re
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import yaml

from common.context_sources import SourceContext
from common.errors import UnavailableError
from common.records import Answer, Passage, Question, Ranked
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.oracle import Oracle
from harness.context_sources.facts import IndexedFacts
from harness.context_sources.generated import NOTHING_KNOWN
from harness.context_sources.web import WebContext
from harness.llm.prompts import Prompt
from harness.readers.llm import LlmReader
from harness.readers.t5 import ContextReader
from harness.systems import msrag as msrag_module
from harness.systems.msrag import Msrag
from tests.helpers.reports import timeless
from tests.helpers.river_corpus import IDS
from tests.helpers.scripted_lm import FAILS, ScriptedLm
from tests.helpers.table_encoder import TableEncoder
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter

ALBA, ELBE = Question("a", "alba river", answers=("sea",)), Question("b", "elbe", answers=("ocean",))
TABLE = {"alba river": {"decomposition": ["alba joins", "brune ends", "alba joins", "calder", "dorn"]}}
ENCODER = TableEncoder({"ocean": (1, 0), "sea": (0.8, 0.6), "lake": (0, 1)})
RELEVANCE = {"ocean": 0.4, "sea": 0.7, "lake": 0.2}  # P(relevant) of a context, by its last word


class WordReader:
    """Answers by the last word of the first passage, and from memory with one word."""

    def __init__(self, memory: str = "lake") -> None:
        self.memory = memory
        self.asked: list[list[str]] = []

    def read(self, questions, evidence) -> list[Answer]:
        self.asked.append([question.id for question in questions])
        words = [(hits[0].passage.text.split()[-1], hits[0].passage.id) for hits in evidence]
        notes = [{"contexts": [{"id": id_, "probability": RELEVANCE.get(word, 0.5)}]} for word, id_ in words]
        costs = {"model_calls": 1.0, "tokens": 5.0}
        return [Answer(q.id, w[0], (), -0.5, costs, n) for q, w, n in zip(questions, words, notes, strict=True)]

    def read_closed_book(self, questions) -> list[Answer]:
        return [Answer(q.id, self.memory, (), -2.0, {"model_calls": 1.0, "tokens": 1.0}) for q in questions]


class Written:
    """A source whose contexts are written down."""

    def __init__(self, *contexts: SourceContext) -> None:
        self.given = contexts

    def contexts(self, questions) -> list[SourceContext]:
        return [self.given[place % len(self.given)] for place in range(len(questions))]


DOWN = "search.example cannot be reached: start the server."


def ends(word: str, link: str = "") -> SourceContext:
    found = Passage.of("Title", f"it ends in the {word}", "web", metadata={"link": link} if link else None)
    return SourceContext((Ranked(found, 1.0),), costs={"retriever_calls": 1.0})


NO_WEB = Written(SourceContext((), "no search found anything"))
OCEAN, SEA = Written(ends("ocean", "http://a.example/x")), Written(ends("sea"))


def msrag(web=OCEAN, knowledge=SEA, reader=None, **options) -> Msrag:
    return Msrag(reader or WordReader(), options.pop("selector", EstimatedRelevance()), web, knowledge, **options)


def test_the_answer_of_the_most_relevant_context_is_given_with_its_evidence() -> None:
    (answer,) = msrag().answer([ALBA])
    assert (answer.question_id, answer.text, answer.logprob) == ("a", "sea", -0.5)
    assert answer.evidence == SEA.given[0].passages
    told = answer.notes["sources"]
    said = {each["source"]: (each["answer"], each.get("score")) for each in told}
    assert said == {"web": ("ocean", 0.4), "generated": ("sea", 0.7), "none": ("lake", None)}
    assert told[0]["passages"][0]["link"] == "http://a.example/x"
    assert (answer.notes["chosen"], answer.notes["selector"]) == ("generated", "most relevant context")
    assert not {"lost", "uses_gold"} & {*answer.notes}
    counted = {name: value for name, value in answer.costs.items() if not name.startswith("seconds/")}
    assert counted == {"retriever_calls": 2.0, "model_calls": 3.0, "tokens": 11.0}
    assert answer.costs["seconds/reading"] > 0
    first, second = msrag(selector=Oracle(loaded=ENCODER)).answer([ALBA, ELBE])
    assert (first.text, second.text, first.notes["uses_gold"]) == ("sea", "ocean", True)


def test_a_lost_source_leaves_the_other_two_and_is_named_and_one_that_has_nothing_is_not_lost() -> None:
    down = SimpleNamespace(contexts=mock.Mock(side_effect=UnavailableError(DOWN)))
    lost = Written(SourceContext((), "HTTP 500 after 3 retries", lost=True))
    for web, why in ((down, DOWN), (lost, "HTTP 500 after 3 retries")):
        (answer,) = msrag(web).answer([ALBA])
        assert (answer.text, answer.notes["lost"], answer.costs["lost_sources"]) == ("sea", {"web": why}, 1.0)
    knowledge = Written(SourceContext((), NOTHING_KNOWN, costs={"not_retrieved": 1.0}))
    (answer,) = msrag(NO_WEB, knowledge).answer("alba river")
    assert (answer.text, answer.evidence, answer.costs["not_retrieved"]) == ("lake", (), 1.0)
    assert "lost" not in answer.notes


def test_what_two_sources_find_is_read_in_one_call_and_in_order() -> None:
    web, knowledge = Written(ends("ocean"), *NO_WEB.given), Written(*NO_WEB.given, ends("lake"))
    reader = WordReader("sea")
    first, second = msrag(web, knowledge, reader).answer([ALBA, ELBE])
    assert reader.asked == [["a", "b"]]
    assert [each["answer"] for each in first.notes["sources"]] == ["ocean", "", "sea"]
    assert [each["answer"] for each in second.notes["sources"]] == ["", "lake", "sea"]


@pytest.mark.parametrize(
    ("sources", "text", "calls"),
    [
        (("web", "none"), "ocean", 2.0),  # w/o GPT
        (("generated", "none"), "sea", 2.0),  # w/o Web
        (("generated",), "sea", 1.0),  # GPT-Retrieval
        (("none",), "lake", 1.0),  # No-RAG
        (("none", "web"), "ocean", 2.0),  # without a context last, whatever the order
    ],
)
def test_the_paper_s_baselines_are_options(sources: tuple[str, ...], text: str, calls: float) -> None:
    (answer,) = msrag(sources=sources).answer([ALBA])
    assert (answer.text, answer.costs["model_calls"]) == (text, calls)
    assert [each["source"] for each in answer.notes["sources"]] == list(sources)


def test_the_web_searches_with_three_sub_questions_and_merges_by_rank(bm25) -> None:
    retriever = CountingRetriever(bm25)
    web = WebContext(retriever, TableRewriter(TABLE), per_query=2, passages=3)
    first, second = web.contexts([ALBA, ELBE])
    # three without repetition; a fallback
    assert retriever.asked == [(["alba joins", "brune ends", "calder", "elbe"], 2)]
    assert [each["query"] for each in first.notes["queries"]] == ["alba joins", "brune ends", "calder"]
    assert (first.costs["retriever_calls"], first.costs["rewriter_calls"], second.costs["fallbacks"]) == (3.0, 1.0, 1.0)
    assert second.notes["fallbacks"] == {"decomposition": "it is missing"}
    # every list's first passage scores 1/61; Brune is also second in the first list or Alba (ship) in the second
    ids = [hit.passage.id for hit in first.passages]
    assert len(ids) == len(set(ids)) == 3
    assert {IDS["Alba"], IDS["Brune"]} < set(ids) | {IDS["Calder"]}
    assert {hit.passage.source for hit in first.passages} == {"web"}
    plain = web.unsegmented(summarized=False)
    context, nothing = plain.contexts([ALBA, Question("x", "zzz")])
    assert [each["query"] for each in context.notes["queries"]] == ["alba river"]
    assert (nothing.passages, nothing.missing, nothing.lost) == ((), "no search found anything", False)


class Numbered:
    """A retriever: each query finds k passages of 200 words of its own."""

    def search(self, queries, k: int) -> list[list[Ranked]]:
        texts = [[f"{query.split()[0]}{place} " + "word " * 199 for place in range(k)] for query in queries]
        return [[Ranked(Passage.of("", text.strip()), 1.0) for text in each] for each in texts]


@pytest.mark.parametrize(
    ("options", "summarized", "words", "read"),
    [
        ({}, 15, 3000, (3, 600)),  # all that three searches found; without a summary three of 200 words
        ({"passages": 2}, 2, 400, (2, 400)),
        ({"max_words": 700}, 4, 700, (4, 700)),
        ({"passages": 8, "max_words": 5000}, 8, 1600, (8, 1600)),
    ],
)
def test_all_found_passages_are_summarized_unless_an_option_cuts_them(options, summarized, words, read) -> None:
    lm = ScriptedLm({"Question: alba river": [FAILS]})
    web = WebContext(Numbered(), TableRewriter(TABLE), summarizer=lm, **options)
    (context,) = web.contexts([ALBA])
    shown = lm.asked[0][0].messages[-1].content
    assert (shown.count("\n</passage>"), len(re.findall(r"\bword\b", shown))) == (summarized, words - summarized)
    found = [len(hit.passage.text.split()) for hit in context.passages]  # of the failed call
    assert (len(found), sum(found)) == read
    lm.replies = {"Question: alba river": ["Summary: The alba."]}
    assert len(web.contexts([ALBA])[0].notes["summary of"]) == summarized


def test_no_retrieval_and_the_sources_are_read_by_prompts_of_one_kind() -> None:
    read, alone = Prompt.load("drrag"), LlmReader(ScriptedLm({})).closed_book
    for key in ("max_tokens", "answer_after", "answer_until", "verbatim", "system", "examples"):
        assert getattr(alone, key) == getattr(read, key)
    lm = ScriptedLm({"": ["so. Answer: sea;"]})
    msrag(reader=LlmReader(lm, max_answer_tokens=50), sources=("generated", "none")).answer([ALBA])
    assert [chat.max_tokens for chats in lm.asked for chat in chats] == [50, 50]


def test_the_paper_s_config_has_a_model_of_the_sources_and_one_that_reads() -> None:
    init = yaml.safe_load(Path("configs/infer/msrag.yaml").read_text())["system"]["init_args"]
    web, knowledge, reader = (init[part]["init_args"] for part in ("web", "knowledge", "reader"))
    models = [web["summarizer"], web["rewriter"]["init_args"]["llm"], knowledge["llm"], reader["llm"]]
    assert [each["init_args"]["model"] for each in models] == ["gpt-3.5-turbo"] * 3 + ["meta-llama/Llama-2-7b-chat-hf"]


def test_the_summary_takes_the_place_of_the_passages_and_a_failed_one_does_not(bm25) -> None:
    replies = {"Question: alba river": ["Summary: The alba joins the brune."], "Question: elbe": [FAILS]}
    web = WebContext(bm25, summarizer=ScriptedLm(replies), per_query=2)
    first, second = web.contexts([ALBA, ELBE])
    (hit,), found = first.passages, bm25.search(["alba river", "elbe"], 2)
    assert (hit.passage.text, hit.passage.source) == ("The alba joins the brune.", "web")
    assert [each["id"] for each in first.notes["summary of"]] == [hit.passage.id for hit in found[0]]
    assert (first.costs["summary_calls"], first.costs["tokens"], first.costs["reply_tokens"]) == (1.0, 10.0, 6.0)
    assert [hit.passage.id for hit in second.passages] == [hit.passage.id for hit in found[1]]
    assert (second.notes["no summary"], second.costs["failed_summary_calls"]) == ("HTTP 500", 1.0)


def test_with_real_parts_results_are_the_same_one_after_the_other(bm25, serving, monkeypatch) -> None:
    questions = [Question(text, text) for text in ("alba river", "elbe mountain", "calder joins", "zzz")]
    web, knowledge = WebContext(bm25, TableRewriter(TABLE)), IndexedFacts(bm25)
    system = msrag(web, knowledge, ContextReader(serving))
    together = system.answer(questions)
    monkeypatch.setattr(msrag_module, "run_together", lambda calls, *_, **__: {name: calls[name]() for name in calls})
    one_by_one = system.answer(questions)
    assert [timeless(asdict(each)) for each in together] == [timeless(asdict(each)) for each in one_by_one]
    assert [system.answer([question])[0].text for question in questions] == [each.text for each in together]
    assert system.retriever is bm25  # what a report names as the index
