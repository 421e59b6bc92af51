"""DMQR-RAG's system: what its answers hold, its costs and notes, its baselines as options, its reader."""

from common.records import Question
from harness.readers.llm import LlmReader
from harness.rewriters.llm import LlmRewriter
from harness.runtime.provenance import models_of
from harness.systems.dmqr import Dmqr
from harness.systems.retrieve_read import RetrieveRead
from models.rerag.model import ReRagModel
from tests.helpers.echo_reader import EchoReader
from tests.helpers.river_corpus import IDS
from tests.helpers.scripted_lm import FAILS, ScriptedLm
from tests.helpers.table_rewriter import CountingEstimator, CountingRetriever, TableRewriter

FIRST, SECOND = Question("a", "alba river"), Question("b", "elbe")
TABLE = {"alba river": {"kwr": ["elbe mountain"], "par": ["brune ends ocean", "zzz"]}, "elbe": {"par": ["dorn"]}}
TWO = ("kwr", "par")


def test_its_answers_hold_the_fused_passages_and_say_which_query_found_them(bm25) -> None:
    system = Dmqr(bm25, TableRewriter(TABLE, "so"), TWO, per_query=3, k=4, fusion="rrf")
    first, second = system.answer([FIRST, SECOND])
    assert (first.question_id, first.text) == ("a", "")
    assert first.evidence == system.search.find([FIRST, SECOND], 4).results[0].ranked
    queries = first.notes["queries"]
    made_by = {each["query"]: ", ".join(each["made_by"]) for each in queries}
    assert made_by == {"alba river": "question", "elbe mountain": "kwr", "brune ends ocean": "par", "zzz": "par"}
    assert set(queries[0]["found"]) == {IDS["Alba"], IDS["Alba (ship)"], IDS["Calder"]}
    assert set(queries[1]["found"]) == {IDS["Elbe"], IDS["Fulda"]}
    assert (queries[2]["found"][0], len(queries[2]["found"]), queries[3]["found"]) == (IDS["Brune"], 3, [])
    for place, each in enumerate(queries):
        others = {id_ for other, q in enumerate(queries) if other != place for id_ in q["found"]}
        assert [passage["id"] for passage in each["alone"]] == [id_ for id_ in each["found"] if id_ not in others]
    found = {query["made_by"][0]: query["found"] for query in queries[:3]}
    assert [each["id"] for each in first.notes["passages"]] == [hit.passage.id for hit in first.evidence]
    for each in first.notes["passages"]:
        ranks = {name: ids.index(each["id"]) + 1 for name, ids in found.items() if each["id"] in ids}
        assert each["found_by"] == ", ".join(f"{name} {rank}" for name, rank in ranks.items())
        assert each["rank"] == ranks.get("question")
    assert (first.notes["reason"], first.notes.get("fallbacks")) == ("so", None)
    assert second.notes["fallbacks"] == {"kwr": "it is missing"}


def test_its_costs_count_searches_scores_rewriting_and_reading(bm25, serving) -> None:
    rewriter = TableRewriter(TABLE)
    system = Dmqr(bm25, rewriter, TWO, per_query=3, k=2, serving=serving, reader=EchoReader(), device="cpu")
    first, second = system.answer([FIRST, SECOND])
    counts = {name: value for name, value in first.costs.items() if "/" not in name}
    scored = len({id_ for query in first.notes["queries"] for id_ in query["found"]})
    tokens = counts.pop("tokens")
    assert counts == {"retriever_calls": 4, "model_calls": scored + 1, "rewriter_calls": 1, "reply_tokens": 3}
    assert tokens > 12  # of the rewriter 7, of the reader 5, of the estimator
    assert second.costs["fallbacks"] == 1
    stages = {name.removeprefix("seconds/") for name in first.costs if "/" in name}
    assert stages == {"rewriting", "retrieval", "reranking", "reading"}
    assert len(first.evidence) == 2
    assert (first.text, first.notes["read"]) == (" ".join(hit.passage.title for hit in first.evidence), True)
    assert rewriter.asked == [["alba river", "elbe"]]


def test_without_a_rewriter_and_reranking_it_is_plain_retrieval(bm25) -> None:
    oqr, plain = Dmqr(bm25, k=3, fusion="rrf"), RetrieveRead(bm25, 3)
    for one, other in zip(oqr.answer([FIRST, SECOND]), plain.answer([FIRST, SECOND]), strict=True):
        assert [hit.passage for hit in one.evidence] == [hit.passage for hit in other.evidence]
        assert ("found_by" in one.notes["passages"][0], "rewriter_calls" in one.costs) == (False, False)


def test_a_failed_call_of_the_rewriter_is_not_taken_for_the_reader_s(bm25) -> None:
    (answer,) = Dmqr(bm25, LlmRewriter(ScriptedLm({"alba river": [FAILS]})), fusion="rrf").answer("alba river")
    assert (answer.costs["failed_rewriter_calls"], answer.costs["fallbacks"]) == (1, 4)
    assert "failed_calls" not in answer.costs
    assert answer.notes["fallbacks"] == dict.fromkeys(("gqr", "kwr", "par", "cce"), "HTTP 500")
    assert [each["query"] for each in answer.notes["queries"]] == ["alba river"]
    assert answer.evidence[0].passage.title == "Alba"


def test_a_report_names_both_models(bm25) -> None:
    rewriter, reader = LlmRewriter(ScriptedLm({})), LlmReader(ScriptedLm({}))
    assert models_of(Dmqr(bm25, rewriter, reader=reader, fusion="rrf")) == {"reader": reader, "rewriter": rewriter}
    inner = Dmqr(bm25, rewriter, fusion="rrf").search
    assert models_of(RetrieveRead(inner)) == {"retriever's rewriter": rewriter}
    both = {"reader": reader, "retriever's retriever's rewriter": rewriter}
    assert models_of(RetrieveRead(CountingRetriever(inner), reader=reader)) == both


LATER = Question("b", "and its river", history=("where is the calder", "north"))
ONE_LINE = "General Search Rewriting: calder river\nKeyword Rewriting: calder, dorn"


def test_a_question_with_earlier_turns_is_searched_reranked_and_read_alone(bm25, serving) -> None:
    replies = {"and its river": [ONE_LINE], "alba river": [ONE_LINE.replace("calder", "alba")]}
    rewriter = LlmRewriter(ScriptedLm(replies))
    scorer = CountingEstimator(ReRagModel.load(serving, "cpu").estimator)
    counting, reader = CountingRetriever(bm25), EchoReader()
    system = Dmqr(counting, rewriter, ("gqr", "kwr"), 3, k=2, scorer=scorer, reader=reader)
    first, later = system.answer([FIRST, LATER])
    assert counting.asked == [(["alba river", "alba, dorn", "calder river", "calder, dorn"], 3)]
    assert [each["made_by"] for each in later.notes["queries"]] == [["question", "gqr"], ["kwr"]]
    assert {question for pairs in scorer.asked for question, _ in pairs} == {"alba river", "calder river"}
    assert reader.questions == [FIRST, Question("b", "calder river")]
    assert (later.question_id, later.notes["standalone"]) == ("b", "calder river")
    assert "standalone" not in first.notes


def test_a_rewriter_that_reads_no_turns_gets_them_in_the_question(bm25) -> None:
    text = "where is the calder north and its river"
    table, reader = TableRewriter({text: {"kwr": ["calder"], "par": ["dorn"]}}), EchoReader()
    (answer,) = Dmqr(bm25, table, TWO, 3, fusion="rrf", reader=reader).answer([LATER])
    assert table.asked == [[text]]
    assert [each["query"] for each in answer.notes["queries"]] == [text, "calder", "dorn"]
    assert reader.questions == [Question("b", text)]
    (plain,) = Dmqr(bm25, per_query=3, fusion="rrf", reader=reader).answer([LATER])
    assert plain.notes["standalone"] == text
