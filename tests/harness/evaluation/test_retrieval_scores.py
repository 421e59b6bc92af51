"""Retrieval scores against values worked out by hand; against trec_eval in test_library_oracles."""

import numpy as np
import pytest

from common.records import GoldSegment, Passage, Question, Ranked
from harness.evaluation.retrieval_scores import retrieval_scores

A, B, C, D, E = (Passage.of(title, text) for title, text in
                 [("A", "the Elbe"), ("B", "a lake"), ("C", "Mount Alba"), ("D", "the Fulda river"),
                     ("E", "Elba")])  # fmt: skip
QUESTION = Question("q", "?", answers=("fulda", "Fulda River"), support=(B.id, D.id, E.id))


def ranked(*passages: Passage) -> list[Ranked]:
    return [Ranked(passage, -float(place)) for place, passage in enumerate(passages)]


def scores_of(question: Question, *passages: Passage, ks: tuple[int, ...] = (1, 2, 4)) -> dict[str, float]:
    return {name: column.item() for name, column in retrieval_scores([question], [ranked(*passages)], ks).items()}


def test_scores_worked_out_by_hand() -> None:
    assert scores_of(QUESTION, A, B, C, D) == {  # gold: places 2 and 4, E is missed; the answer: place 4
        "all@1": 0, "all@2": 0, "all@4": 0,
        "recall@1": 0, "hit@1": 0, "precision@1": 0, "has-answer@1": 0,
        "recall@2": 1 / 3, "hit@2": 1, "precision@2": 1 / 2, "has-answer@2": 0,
        "recall@4": 2 / 3, "hit@4": 1, "precision@4": 2 / 4, "has-answer@4": 1,
        "MRR": 1 / 2, "EM": 0, "F1": pytest.approx(4 / 7),  # precision 2/4, recall 2/3
    }  # fmt: skip


def test_all_gold_passages_are_found_at_the_place_of_the_last() -> None:
    two = Question("q", "?", support=(B.id, D.id))
    found = scores_of(two, A, B, C, D, ks=(2, 3, 4))
    assert (found["all@2"], found["all@3"], found["all@4"]) == (0, 0, 1)
    assert np.isnan(scores_of(Question("q", "?"), A)["all@1"])


def test_em_and_f1_compare_all_of_the_evidence_with_all_gold_passages() -> None:
    two = Question("q", "?", support=(B.id, D.id))
    found = {
        name: scores_of(two, *each)
        for name, each in {"both": (D, B), "one": (B,), "more": (B, A, D), "none": (A,)}.items()
    }
    assert {name: (each["EM"], each["F1"]) for name, each in found.items()} == {
        "both": (1, 1), "one": (0, pytest.approx(2 / 3)), "more": (0, pytest.approx(4 / 5)), "none": (0, 0),
    }  # fmt: skip


def test_fewer_passages_than_k_and_none() -> None:
    short = scores_of(QUESTION, D)
    assert (short["recall@4"], short["precision@4"], short["MRR"], short["has-answer@4"]) == (1 / 3, 1 / 4, 1, 1)
    assert set(scores_of(QUESTION).values()) == {0}


def test_a_passage_that_occurs_twice_counts_once() -> None:
    twice = Question("q", "?", support=(B.id, B.id, D.id))
    assert scores_of(twice, A, A, B, B, D, ks=(2, 3)) == pytest.approx(
        scores_of(twice, A, B, D, ks=(2, 3)), nan_ok=True
    )
    assert scores_of(twice, A, A, B, B, D, ks=(2, 3))["recall@2"] == 1 / 2
    assert scores_of(twice, B, A, ks=(2,))["precision@2"] == 1 / 2


def test_the_mrr_looks_beyond_the_greatest_k() -> None:
    assert scores_of(QUESTION, A, C, B, ks=(1,))["MRR"] == 1 / 3


def test_gold_segments_are_found_in_any_passages_of_their_document() -> None:
    def chunk(document: str, text: str) -> Passage:
        return Passage.of("", text, metadata={"document": document})

    gold = (
        GoldSegment("a.pdf", ("weighs 9 kg",)),
        GoldSegment("b.pdf", ("8 kg", "two")),
        GoldSegment("b.pdf", ("lost",)),
    )
    question = Question("q", "?", gold_segments=gold)
    found = [
        chunk("b.pdf", "it weighs 9 kg"),  # of another document
        chunk("a.pdf", "it weighs 9 kg and"),
        chunk("a.pdf", "so it weighs 9 kg"),  # an overlapping chunk: relevant, but the segment was found before
        chunk("b.pdf", "two of 8 kg"),
    ]
    columns = retrieval_scores([question], [ranked(*found)], (1, 3, 4), indexed=16)
    scores = {name: column.item() for name, column in columns.items()}
    assert [scores[f"recall@{k}"] for k in (1, 3, 4)] == [0, 1 / 3, 2 / 3]
    assert [scores[f"hit@{k}"] for k in (1, 3, 4)] == [0, 1, 1]
    assert [scores[f"precision@{k}"] for k in (1, 3, 4)] == [0, 2 / 3, 3 / 4]
    assert scores["MRR"] == 1 / 2
    # ranks 2, 4 and none of 16: (1 - 1/4, 1 - 2/4, 0) on average
    assert scores["Log-Rank"] == pytest.approx((3 / 4 + 2 / 4) / 3)


def test_the_log_rank_index_of_gold_passages() -> None:
    columns = retrieval_scores([QUESTION], [ranked(A, B, C, D)], (1,), indexed=16)
    assert columns["Log-Rank"].item() == pytest.approx((3 / 4 + 2 / 4 + 0) / 3)
    assert "Log-Rank" not in retrieval_scores([QUESTION], [ranked(A)], (1,))
    assert np.isnan(retrieval_scores([Question("q", "?")], [ranked(A)], (1,), indexed=3)["Log-Rank"].item())


def test_what_is_undefined_is_nan() -> None:
    questions = [
        Question("no gold", "?", answers=("fulda",)),
        Question("gold not shipped", "?", answers=("fulda",), support=(D.id,), unshipped_support=("X",)),
        Question("no answer", "?", support=(D.id,)),
    ]
    columns = retrieval_scores(questions, [ranked(D)] * 3, (1,))
    for name in ("recall@1", "hit@1", "precision@1", "MRR", "EM", "F1"):
        np.testing.assert_array_equal(columns[name], [np.nan, np.nan, 1])
    np.testing.assert_array_equal(columns["has-answer@1"], [1, 1, np.nan])


def test_columns_are_in_order_also_without_questions() -> None:
    columns = retrieval_scores([], [], (3, 1))
    assert list(columns) == [
        "recall@3", "all@3", "hit@3", "precision@3", "has-answer@3", "recall@1", "all@1", "hit@1", "precision@1",
        "has-answer@1", "MRR", "EM", "F1",
    ]  # fmt: skip
    assert all(column.shape == (0,) for column in columns.values())


def test_has_answer_precision_counts_all_passages_with_an_answer() -> None:
    passages = [Passage.of(str(number), text) for number, text in enumerate(["x Rome", "y", "Rome z", "Rome"])]
    questions = [Question("q", "?", ("Rome",)), Question("r", "?")]
    columns = retrieval_scores(questions, [ranked(*passages)] * 2, (1, 3, 5), answers_in_all=True)
    found = {k: columns[f"has-answer precision@{k}"] for k in (1, 3, 5)}
    np.testing.assert_allclose(np.array([*found.values()]), [[1, np.nan], [2 / 3, np.nan], [3 / 5, np.nan]])
    np.testing.assert_array_equal(columns["has-answer@1"], [1, np.nan])
