"""DR-RAG end to end on a corpus worked out by hand, with the real BM25 index."""

import pytest

from common.records import Question, Ranked
from harness.selection.options import SelectionOptions
from harness.systems.drrag import DrRag, best_partner
from tests.helpers.echo_reader import EchoReader
from tests.helpers.river_corpus import IDS, PASSAGES, QUESTIONS, gold_scorer
from tests.helpers.table_rewriter import CountingRetriever

ASKED = [Question(id=id_, text=text) for id_, text, *_ in QUESTIONS]


def titles(answer):
    return [hit.passage.title for hit in answer.evidence]


def drrag(retriever, scorer=None, reader=None, **options):
    """A system that keeps two documents, unless told."""
    selection = SelectionOptions(**{"k": 2, **options})
    return DrRag(retriever, scorer=scorer or gold_scorer(), reader=reader, selection=selection)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        # q1 alone: Alba (both words), then the ship and Calder; Brune shares no word with it
        ({"method": "sm", "k": 3}, [["Alba", "Alba (ship)", "Calder"]]),
        ({"method": "qdc"}, [["Alba", "Alba (ship)"]]),  # without a classifier the look-alike wins
        ({"method": "cis"}, [["Alba"]]),
        ({"method": "cfs"}, [["Alba", "Brune"], ["Calder", "Dorn"], ["Elbe", "Fulda"]]),
        ({"method": "cfs", "second_stage": "ranking"}, [["Alba"], ["Calder"], ["Elbe", "Fulda"]]),
        ({"method": "ranked"}, [["Alba", "Brune"], ["Calder", "Dorn"], ["Elbe", "Fulda"]]),
    ],
)
def test_the_second_hop_is_found_through_the_first(bm25, options, found):
    assert [titles(answer) for answer in drrag(bm25, **options).answer(ASKED)][: len(found)] == found


def test_two_batched_searches_and_few_scoring_calls_for_all_questions(bm25):
    counted, weighted, scorer = CountingRetriever(bm25), CountingRetriever(bm25), gold_scorer()
    system = DrRag(counted, scorer=scorer, lookahead=8, selection=SelectionOptions("cfs", k=4))
    answers = system.answer(ASKED)
    assert [(len(queries), k) for queries, k in counted.asked] == [(3, 4), (6, 10)]  # 2k + k1
    assert counted.asked[1][0][0] == "alba river Alba alba river joins brune"
    assert len(scorer.asked) == len(set(scorer.asked)) == sum(answer.costs["model_calls"] for answer in answers)
    assert all(answer.costs["retriever_calls"] == 3 for answer in answers)
    times = {f"seconds/{stage}" for stage in ("first_stage", "second_stage", "scoring")}
    assert {name for name in answers[0].costs if name.startswith("seconds/")} == times
    assert all(0 <= answers[0].costs[name] < 60 for name in times)
    drrag(weighted, k=4, question_weight=3).answer(ASKED[:1])  # the question stands so often in the second search
    first, second = (queries[0] for queries, _ in weighted.asked)
    assert (first, second) == ("alba river", "alba river alba river alba river Alba alba river joins brune")


class Named:
    """A retriever that finds the documents that a query names by their titles, as title links do."""

    def search(self, queries, k):
        return [[Ranked(p, 1.0) for title, p in PASSAGES.items() if title in query.split()][:k] for query in queries]


def test_the_second_stage_may_have_its_own_retriever(bm25):
    first, second = CountingRetriever(bm25), CountingRetriever(Named())
    selection = SelectionOptions("qdc", k=2)
    found = DrRag(first, selection=selection, second_retriever=second).answer(ASKED)
    assert [len(queries) for queries, _ in first.asked] == [3]  # q alone
    assert [queries[0] for queries, _ in second.asked] == ["alba river Alba alba river joins brune"]
    # no document names another by a title with a capital letter: no second stage finds anything but d_i
    assert [titles(answer) for answer in found] == [["Alba"], ["Calder"], ["Elbe"]]
    same = DrRag(bm25, selection=selection, second_retriever=bm25).answer(ASKED)
    assert [*map(titles, same)] == [*map(titles, DrRag(bm25, selection=selection).answer(ASKED))]


def test_threshold_is_the_exported_one_unless_given(bm25):
    scorer = gold_scorer()
    scorer.threshold = 0.95
    assert titles(drrag(bm25, scorer).answer(ASKED)[0]) == ["Alba"]
    assert titles(drrag(bm25, scorer, threshold=0.5).answer(ASKED)[0]) == ["Alba", "Brune"]


def test_documents_are_told_with_stage_and_partner_and_a_reader_sees_them_in_order(bm25):
    (answer,) = drrag(bm25).answer(ASKED[:1])
    assert (answer.question_id, answer.text, answer.logprob) == ("q1", "", None)
    assert answer.notes["documents"] == [
        {"id": IDS["Alba"], "stage": "first", "partner": IDS["Brune"], "probability": 0.9, "rank": 1},
        {"id": IDS["Brune"], "stage": "second", "partner": IDS["Alba"], "probability": 0.9, "rank": None},
    ]
    assert [hit.passage for hit in answer.evidence] == [PASSAGES["Alba"], PASSAGES["Brune"]]
    (read,) = drrag(bm25, reader=EchoReader()).answer(ASKED[:1])
    assert (read.text, read.logprob, read.notes["selection"]) == ("Alba Brune", -1.0, "cfs")
    assert read.costs["model_calls"] == 1 + answer.costs["model_calls"]
    # Brune is the only candidate: what only fills the budget is of the first stage
    options = {"k": 4, "anchors": 1, "anchor_depth": 1}
    (answer,) = drrag(bm25, method="ranked", **options).answer([Question("q", "alba river joins brune")])
    stages = [(note["stage"], note["rank"]) for note in answer.notes["documents"]]
    assert stages == [("first", 1), ("second", 2), ("first", 3), ("first", 4)]
    scores = {("a", "x"): 0.7, ("b", "x"): 0.9, ("x", "y"): 0.8}
    assert best_partner("x", ["a", "x", "y"], scores) == ("y", 0.8)  # among the chosen
    assert best_partner("b", ["a", "b"], scores) == (None, None)
