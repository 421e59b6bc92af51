"""MSRAG's system: three answers from three sources, one of them chosen.

Lost sources, costs, notes, and what `ask` prints of it.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

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
from harness.interfaces import ClosedBookReader
from harness.llm.prompts import Prompt
from harness.readers.llm import LlmReader
from harness.readers.t5 import ContextReader
from harness.systems import msrag
from harness.systems.msrag import Msrag
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

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        self.asked.append([question.id for question in questions])
        return [self._answer(*each) for each in zip(questions, evidence, strict=True)]

    @staticmethod
    def _answer(question: Question, hits: Sequence[Ranked]) -> Answer:
        word = hits[0].passage.text.split()[-1]
        notes = {"contexts": [{"id": hits[0].passage.id, "probability": RELEVANCE.get(word, 0.5)}]}
        return Answer(question.id, word, (), -0.5, {"model_calls": 1.0, "tokens": 5.0}, notes)

    def read_closed_book(self, questions: Sequence[Question]) -> list[Answer]:
        return [Answer(q.id, self.memory, (), -2.0, {"model_calls": 1.0, "tokens": 1.0}) for q in questions]


class Written:
    """A source whose contexts are written down."""

    def __init__(self, *contexts: SourceContext) -> None:
        self.given = contexts

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        return [self.given[place % len(self.given)] for place in range(len(questions))]


class Down:
    """A source whose service is down."""

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        raise UnavailableError("search.example cannot be reached: start the server.")


def passage(text: str, link: str = "") -> Ranked:
    return Ranked(Passage.of("Title", text, "web", metadata={"link": link} if link else None), 1.0)


def ends(word: str, link: str = "") -> SourceContext:
    return SourceContext((passage(f"it ends in the {word}", link),), costs={"retriever_calls": 1.0})


def test_the_answer_of_the_most_relevant_context_is_given_with_its_evidence() -> None:
    web, knowledge = Written(ends("ocean", "http://a.example/x")), Written(ends("sea"))
    reader = WordReader()
    assert isinstance(reader, ClosedBookReader)
    system = Msrag(reader, EstimatedRelevance(), web, knowledge)
    (answer,) = system.answer([ALBA])
    assert (answer.question_id, answer.text, answer.logprob) == ("a", "sea", -0.5)
    assert answer.evidence == knowledge.given[0].passages
    told = answer.notes["sources"]
    assert [(each["source"], each["answer"], each.get("score")) for each in told] == [
        ("web", "ocean", 0.4), ("generated", "sea", 0.7), ("none", "lake", None),
    ]  # fmt: skip
    assert told[0]["passages"][0]["link"] == "http://a.example/x"
    assert (answer.notes["chosen"], answer.notes["selector"]) == ("generated", "most relevant context")
    assert "lost" not in answer.notes
    assert "uses_gold" not in answer.notes
    counted = {name: value for name, value in answer.costs.items() if not name.startswith("seconds/")}
    assert counted == {"retriever_calls": 2.0, "model_calls": 3.0, "tokens": 11.0}
    assert answer.costs["seconds/reading"] > 0


def test_the_oracle_says_that_it_uses_the_gold_answer() -> None:
    system = Msrag(WordReader(), Oracle(loaded=ENCODER), Written(ends("ocean")), Written(ends("sea")))
    first, second = system.answer([ALBA, ELBE])
    assert (first.text, second.text) == ("sea", "ocean")
    assert first.notes["uses_gold"] is True


def test_a_lost_source_leaves_the_other_two_and_is_named() -> None:
    for web, why in (
        (Down(), "search.example cannot be reached: start the server."),
        (Written(SourceContext((), "HTTP 500 after 3 retries", lost=True)), "HTTP 500 after 3 retries"),
    ):
        (answer,) = Msrag(WordReader(), EstimatedRelevance(), web, Written(ends("sea"))).answer([ALBA])
        assert answer.text == "sea"
        assert answer.notes["lost"] == {"web": why}
        assert answer.costs["lost_sources"] == 1.0


def test_a_source_that_has_nothing_is_not_lost() -> None:
    web = Written(SourceContext((), "no search found anything"))
    knowledge = Written(SourceContext((), NOTHING_KNOWN, costs={"not_retrieved": 1.0}))
    (answer,) = Msrag(WordReader(), EstimatedRelevance(), web, knowledge).answer("alba river")
    assert (answer.text, answer.evidence) == ("lake", ())
    assert "lost" not in answer.notes
    assert answer.costs["not_retrieved"] == 1.0


def test_what_two_sources_find_is_read_in_one_call_and_in_order() -> None:
    web = Written(ends("ocean"), SourceContext((), "no search found anything"))
    knowledge = Written(SourceContext((), NOTHING_KNOWN), ends("lake"))
    reader = WordReader("sea")
    first, second = Msrag(reader, EstimatedRelevance(), web, knowledge).answer([ALBA, ELBE])
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
    system = Msrag(WordReader(), EstimatedRelevance(), Written(ends("ocean")), Written(ends("sea")), sources)
    (answer,) = system.answer([ALBA])
    assert answer.text == text
    assert answer.costs["model_calls"] == calls
    assert [each["source"] for each in answer.notes["sources"]] == list(sources)


def test_the_web_searches_with_three_sub_questions_and_merges_by_rank(bm25) -> None:
    retriever = CountingRetriever(bm25)
    web = WebContext(retriever, TableRewriter(TABLE), per_query=2, passages=3)
    first, second = web.contexts([ALBA, ELBE])
    # three without repetition; a fallback
    assert retriever.asked == [(["alba joins", "brune ends", "calder", "elbe"], 2)]
    assert [each["query"] for each in first.notes["queries"]] == ["alba joins", "brune ends", "calder"]
    assert first.costs["retriever_calls"] == 3.0
    assert first.costs["rewriter_calls"] == 1.0
    assert second.notes["fallbacks"] == {"decomposition": "it is missing"}
    assert second.costs["fallbacks"] == 1.0
    # every list's first passage scores 1/61; Brune is also second in the first list or Alba (ship) in the second
    ids = [hit.passage.id for hit in first.passages]
    assert len(ids) == len(set(ids)) == 3
    assert {IDS["Alba"], IDS["Brune"]} < set(ids) | {IDS["Calder"]}
    assert {hit.passage.source for hit in first.passages} == {"web"}
    plain = web.unsegmented(summarized=False)
    (context,) = plain.contexts([ALBA])
    assert [each["query"] for each in context.notes["queries"]] == ["alba river"]
    (nothing,) = plain.contexts([Question("x", "zzz")])
    assert (nothing.passages, nothing.missing, nothing.lost) == ((), "no search found anything", False)


class Numbered:
    """A retriever: each query finds k passages of 200 words of its own."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
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
def test_all_passages_that_were_found_are_summarized_unless_an_option_cuts_them(
    options: dict[str, int], summarized: int, words: int, read: tuple[int, int]
) -> None:
    lm = ScriptedLm({"Question: alba river": [FAILS]})
    (context,) = WebContext(Numbered(), TableRewriter(TABLE), summarizer=lm, **options).contexts([ALBA])
    ((chat,),) = lm.asked
    shown = chat.messages[-1].content
    assert shown.count("\n</passage>") == summarized
    assert len(re.findall(r"\bword\b", shown)) == words - summarized
    assert sum(len(hit.passage.text.split()) for hit in context.passages) == read[1]  # of the failed call
    assert len(context.passages) == read[0]
    lm.replies = {"Question: alba river": ["Summary: The alba."]}
    (context,) = WebContext(Numbered(), TableRewriter(TABLE), summarizer=lm, **options).contexts([ALBA])
    assert len(context.notes["summary of"]) == summarized


def test_no_retrieval_and_the_sources_are_read_by_prompts_of_one_kind() -> None:
    read, alone = Prompt.load("drrag"), LlmReader(ScriptedLm({})).closed_book
    for key in ("max_tokens", "answer_after", "answer_until", "verbatim", "system", "examples"):
        assert getattr(alone, key) == getattr(read, key)
    lm = ScriptedLm({"": ["so. Answer: sea;"]})
    Msrag(LlmReader(lm, max_answer_tokens=50), EstimatedRelevance(), knowledge=Written(ends("sea")),
          sources=("generated", "none")).answer([ALBA])  # fmt: skip
    assert [chat.max_tokens for chats in lm.asked for chat in chats] == [50, 50]


def test_the_paper_s_config_has_a_model_of_the_sources_and_one_that_reads() -> None:
    init = yaml.safe_load(Path("configs/infer/msrag.yaml").read_text())["system"]["init_args"]
    web, knowledge = init["web"]["init_args"], init["knowledge"]["init_args"]
    models = [
        web["summarizer"],
        web["rewriter"]["init_args"]["llm"],
        knowledge["llm"],
        init["reader"]["init_args"]["llm"],
    ]
    assert [each["init_args"]["model"] for each in models] == ["gpt-3.5-turbo"] * 3 + ["meta-llama/Llama-2-7b-chat-hf"]


def test_the_summary_takes_the_place_of_the_passages_and_a_failed_one_does_not(bm25) -> None:
    replies = {"Question: alba river": ["Summary: The alba joins the brune."], "Question: elbe": [FAILS]}
    web = WebContext(bm25, summarizer=ScriptedLm(replies), per_query=2)
    first, second = web.contexts([ALBA, ELBE])
    (hit,) = first.passages
    assert (hit.passage.text, hit.passage.source) == ("The alba joins the brune.", "web")
    assert [each["id"] for each in first.notes["summary of"]] == [
        hit.passage.id for hit in bm25.search(["alba river"], 2)[0]
    ]
    assert (first.costs["summary_calls"], first.costs["tokens"], first.costs["reply_tokens"]) == (1.0, 10.0, 6.0)
    assert [hit.passage.id for hit in second.passages] == [hit.passage.id for hit in bm25.search(["elbe"], 2)[0]]
    assert second.notes["no summary"] == "HTTP 500"
    assert second.costs["failed_summary_calls"] == 1.0


def test_with_real_parts_results_are_the_same_together_and_one_after_the_other(
    bm25, serving: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["alba river", "elbe mountain", "calder joins", "zzz"]
    questions = [Question(str(n), text) for n, text in enumerate(texts)]
    system = Msrag(
        ContextReader(serving), EstimatedRelevance(), WebContext(bm25, TableRewriter(TABLE)), IndexedFacts(bm25)
    )
    together = system.answer(questions)
    monkeypatch.setattr(msrag, "run_together", lambda calls, *_, **__: {name: call() for name, call in calls.items()})
    one_by_one = system.answer(questions)

    def timeless(answer: Answer) -> dict:
        record = asdict(answer)
        return record | {"costs": {name: n for name, n in record["costs"].items() if not name.startswith("seconds/")}}

    assert [timeless(each) for each in together] == [timeless(each) for each in one_by_one]
    alone = [system.answer([question])[0].text for question in questions]
    assert alone == [each.text for each in together]
    assert system.retriever is bm25  # what a report names as the index
