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
    system = DrRag(bm25, scorer=gold_scorer(), selection=SelectionOptions(**{"k": 2, **options}))
    assert [titles(answer) for answer in system.answer(ASKED)][: len(found)] == found


def test_two_batched_searches_and_few_scoring_calls_for_all_questions(bm25):
    counted, scorer = CountingRetriever(bm25), gold_scorer()
    system = DrRag(counted, scorer=scorer, lookahead=8, selection=SelectionOptions("cfs", k=4))
    answers = system.answer(ASKED)
    assert [(len(queries), k) for queries, k in counted.asked] == [(3, 4), (6, 10)]  # 2k + k1
    assert counted.asked[1][0][0] == "alba river Alba alba river joins brune"
    assert len(scorer.asked) == len(set(scorer.asked)) == sum(answer.costs["model_calls"] for answer in answers)
    assert all(answer.costs["retriever_calls"] == 3 for answer in answers)
    times = {f"seconds/{stage}" for stage in ("first_stage", "second_stage", "scoring")}
    assert {name for name in answers[0].costs if name.startswith("seconds/")} == times
    assert all(0 <= answers[0].costs[name] < 60 for name in times)


def test_the_question_stands_as_often_as_its_weight_says_in_the_second_search(bm25):
    counted = CountingRetriever(bm25)
    selection = SelectionOptions("cfs", k=4, question_weight=3)
    DrRag(counted, scorer=gold_scorer(), selection=selection).answer(ASKED[:1])
    assert counted.asked[0][0] == ["alba river"]
    assert counted.asked[1][0][0] == "alba river alba river alba river Alba alba river joins brune"


class Named:
    """A retriever that finds the documents that a query names by their titles, as title links do."""

    def search(self, queries, k):
        return [[Ranked(p, 1.0) for title, p in PASSAGES.items() if title in query.split()][:k] for query in queries]


def test_the_second_stage_may_have_its_own_retriever(bm25):
    first, second = CountingRetriever(bm25), CountingRetriever(Named())
    selection = SelectionOptions("qdc", k=2)
    system = DrRag(first, selection=selection, second_retriever=second)
    found = system.answer(ASKED)
    assert [len(queries) for queries, _ in first.asked] == [3]  # q alone
    assert [queries[0] for queries, _ in second.asked] == ["alba river Alba alba river joins brune"]
    # no document names another by a title with a capital letter: no second stage finds anything but d_i
    assert [titles(answer) for answer in found] == [["Alba"], ["Calder"], ["Elbe"]]
    same = DrRag(bm25, selection=selection, second_retriever=bm25).answer(ASKED)
    assert [titles(answer) for answer in same] == [
        titles(answer) for answer in DrRag(bm25, selection=selection).answer(ASKED)
    ]


def test_threshold_is_the_exported_one_unless_given(bm25):
    scorer = gold_scorer()
    scorer.threshold = 0.95
    assert titles(DrRag(bm25, scorer=scorer, selection=SelectionOptions(k=2)).answer(ASKED)[0]) == ["Alba"]
    assert titles(DrRag(bm25, scorer=scorer, selection=SelectionOptions(k=2, threshold=0.5)).answer(ASKED)[0]) == [
        "Alba",
        "Brune",
    ]


def test_without_a_reader_the_evidence_is_the_answer(bm25):
    (answer,) = DrRag(bm25, scorer=gold_scorer(), selection=SelectionOptions(k=2)).answer(ASKED[:1])
    assert (answer.question_id, answer.text, answer.logprob) == ("q1", "", None)
    assert answer.notes["documents"] == [
        {"id": IDS["Alba"], "stage": "first", "partner": IDS["Brune"], "probability": 0.9, "rank": 1},
        {"id": IDS["Brune"], "stage": "second", "partner": IDS["Alba"], "probability": 0.9, "rank": None},
    ]
    assert all(isinstance(hit, Ranked) and hit.passage == PASSAGES[hit.passage.title] for hit in answer.evidence)


def test_a_document_that_only_fills_the_budget_is_of_the_first_stage(bm25):
    options = SelectionOptions("ranked", k=4, anchors=1, anchor_depth=1)  # Brune is the only candidate
    (answer,) = DrRag(bm25, scorer=gold_scorer(), selection=options).answer([Question("q", "alba river joins brune")])
    assert [(note["stage"], note["rank"]) for note in answer.notes["documents"]] == [
        ("first", 1), ("second", 2), ("first", 3), ("first", 4),
    ]  # fmt: skip


def test_a_reader_sees_the_evidence_in_order(bm25):
    options = {"scorer": gold_scorer(), "selection": SelectionOptions(k=2)}
    (answer,) = DrRag(bm25, reader=EchoReader(), **options).answer(ASKED[:1])
    assert (answer.text, answer.logprob) == ("Alba Brune", -1.0)
    assert titles(answer) == ["Alba", "Brune"]
    assert answer.notes["selection"] == "cfs"
    (unread,) = DrRag(bm25, **options).answer(ASKED[:1])
    assert answer.costs["model_calls"] == 1 + unread.costs["model_calls"]


def test_best_partner_is_among_the_chosen():
    scores = {("a", "x"): 0.7, ("b", "x"): 0.9, ("x", "y"): 0.8}
    assert best_partner("x", ["a", "x", "y"], scores) == ("y", 0.8)
    assert best_partner("b", ["a", "b"], scores) == (None, None)
