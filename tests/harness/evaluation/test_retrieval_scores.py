"""Retrieval scores against values worked out by hand; against trec_eval in test_library_oracles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Gold, GoldSegment, Passage, Question, Ranked
from harness.evaluation.log_rank import log_rank, log_rank_index
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
        "recall@1": 0, "hit@1": 0, "precision@1": 0, "has-answer@1": 0, "has-answer precision@1": 0,
        "recall@2": 1 / 3, "hit@2": 1, "precision@2": 1 / 2, "has-answer@2": 0, "has-answer precision@2": 0,
        "recall@4": 2 / 3, "hit@4": 1, "precision@4": 2 / 4, "has-answer@4": 1, "has-answer precision@4": 1 / 4,
        "MRR": 1 / 2, "EM": 0, "F1": pytest.approx(4 / 7),  # precision 2/4, recall 2/3
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


def test_gold_segments_are_found_in_any_passages_of_their_document() -> None:
    def chunk(document: str, text: str) -> Passage:
        return Passage.of("", text, metadata={"document": document})

    gold = (
        GoldSegment("a.pdf", ("weighs 9 kg",)),
        GoldSegment("b.pdf", ("8 kg", "two")),
        GoldSegment("b.pdf", ("lost",)),
    )
    question = Question("q", "?", gold=Gold(segments=gold))
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
        Question("gold not shipped", "?", answers=("fulda",), support=(D.id,), gold=Gold(titles=("X",))),
        Question("no answer", "?", support=(D.id,)),
    ]
    columns = retrieval_scores(questions, [ranked(D)] * 3, (1,))
    for name in ("recall@1", "hit@1", "precision@1", "MRR", "EM", "F1"):
        np.testing.assert_array_equal(columns[name], [np.nan, np.nan, 1])
    np.testing.assert_array_equal(columns["has-answer@1"], [1, 1, np.nan])


def test_has_answer_precision_counts_all_passages_with_an_answer() -> None:
    passages = [Passage.of(str(number), text) for number, text in enumerate(["x Rome", "y", "Rome z", "Rome"])]
    questions = [Question("q", "?", ("Rome",)), Question("r", "?")]
    columns = retrieval_scores(questions, [ranked(*passages)] * 2, (1, 3, 5))
    found = {k: columns[f"has-answer precision@{k}"] for k in (1, 3, 5)}
    np.testing.assert_allclose(np.array([*found.values()]), [[1, np.nan], [2 / 3, np.nan], [3 / 5, np.nan]])
    np.testing.assert_array_equal(columns["has-answer@1"], [1, np.nan])


def test_the_index_by_hand() -> None:
    # gamma 1: S(r) = 1 - log r / log N, here 1 - log 2 / log 8 = 1 - 1/3
    assert log_rank(2, 8) == pytest.approx(2 / 3)
    # gamma 3, N = 6: 1 - log(1 + 3) / log(1 + 15) = 1 - 1/2
    assert log_rank(2, 6, gamma=3) == pytest.approx(1 / 2)
    assert log_rank_index([1, 2, None], 8) == pytest.approx((1 + 2 / 3 + 0) / 3)  # None counts as the eighth


def test_one_segment_is_first_and_last() -> None:
    assert log_rank(1, 1) == log_rank_index([None], 1) == 1.0


def test_without_a_relevant_segment_it_is_undefined() -> None:
    assert math.isnan(log_rank_index([], 5))


@given(st.integers(2, 10_000), st.floats(0.01, 100), st.data())
def test_it_falls_from_1_to_0_and_faster_with_gamma(segments: int, gamma: float, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, segments - 1))
    here, next_one = log_rank(rank, segments, gamma), log_rank(rank + 1, segments, gamma)
    assert 0 <= next_one < here <= 1
    assert log_rank(1, segments, gamma) == 1
    assert log_rank(segments, segments, gamma) == pytest.approx(0, abs=1e-12)
    assert log_rank(rank, segments, 2 * gamma) <= here + 1e-12


def test_a_rank_is_at_most_the_number_of_segments() -> None:
    with pytest.raises(ValueError, match="rank 6 of 5"):
        log_rank(6, 5)
