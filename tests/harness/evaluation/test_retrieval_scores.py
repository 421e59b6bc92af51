"""Retrieval scores by hand and against ir_measures (trec_eval), and the paired bootstrap against SciPy's."""

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, P, R, ScoredDoc, Success
from scipy.stats import bootstrap, norm
from sklearn.metrics import f1_score

from common.records import Answer, Gold, GoldSegment, Passage, Question, Ranked
from common.retrieval import share_found
from harness.evaluation import bootstrap as own_bootstrap
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.log_rank import log_rank, log_rank_index
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.retrieval_tables import evidence_table
from harness.evaluation.settings import Bootstrap, Settings

A, B, C, D, E = (Passage.of(*each) for each in zip(
    "ABCDE", ["the Elbe", "a lake", "Mount Alba", "the Fulda river", "Elba"], strict=True
))  # fmt: skip
QUESTION = Question("q", "?", answers=("fulda", "Fulda River"), support=(B.id, D.id, E.id))
QUESTIONS, PASSAGES = 40, 25
Judgments = dict[str, dict[str, int]]


def ranked(*passages: Passage) -> list[Ranked]:
    return [Ranked(passage, -float(place)) for place, passage in enumerate(passages)]


def scores_of(question: Question, *passages: Passage, ks: tuple[int, ...] = (1, 2, 4), **more: int) -> dict[str, float]:
    found = retrieval_scores([question], [ranked(*passages)], ks, **more)
    return {name: column.item() for name, column in found.items()}


def test_scores_worked_out_by_hand() -> None:
    assert scores_of(QUESTION, A, B, C, D, indexed=16) == {  # gold: places 2 and 4, E is missed; the answer: place 4
        "all@1": 0, "all@2": 0, "all@4": 0,
        "recall@1": 0, "hit@1": 0, "precision@1": 0, "has-answer@1": 0, "has-answer precision@1": 0,
        "recall@2": 1 / 3, "hit@2": 1, "precision@2": 1 / 2, "has-answer@2": 0, "has-answer precision@2": 0,
        "recall@4": 2 / 3, "hit@4": 1, "precision@4": 2 / 4, "has-answer@4": 1, "has-answer precision@4": 1 / 4,
        "MRR": 1 / 2, "EM": 0, "F1": pytest.approx(4 / 7),  # precision 2/4, recall 2/3
        "Log-Rank": pytest.approx((3 / 4 + 2 / 4) / 3),
    }  # fmt: skip
    assert set(scores_of(QUESTION).values()) == {0}
    assert "Log-Rank" not in scores_of(QUESTION, A)


def test_a_passage_that_occurs_twice_counts_once() -> None:
    twice = Question("q", "?", support=(B.id, B.id, D.id))
    found = scores_of(twice, A, A, B, B, D, ks=(2, 3))
    assert found == pytest.approx(scores_of(twice, A, B, D, ks=(2, 3)), nan_ok=True)
    assert found["recall@2"] == scores_of(twice, B, A, ks=(2,))["precision@2"] == 1 / 2


def test_gold_segments_are_found_in_any_passages_of_their_document() -> None:
    gold = [("a.pdf", ("weighs 9 kg",)), ("b.pdf", ("8 kg", "two")), ("b.pdf", ("lost",))]
    question = Question("q", "?", gold=Gold(segments=tuple(GoldSegment(*each) for each in gold)))
    found = [
        ("b.pdf", "it weighs 9 kg"),  # of another document
        ("a.pdf", "it weighs 9 kg and"),
        ("a.pdf", "so it weighs 9 kg"),  # an overlapping chunk: relevant, but the segment was found before
        ("b.pdf", "two of 8 kg"),
    ]
    chunks = [Passage.of("", text, metadata={"document": document}) for document, text in found]
    scores = scores_of(question, *chunks, ks=(1, 3, 4), indexed=16)
    assert [scores[f"recall@{k}"] for k in (1, 3, 4)] == [0, 1 / 3, 2 / 3]
    assert [scores[f"hit@{k}"] for k in (1, 3, 4)] == [0, 1, 1]
    assert [scores[f"precision@{k}"] for k in (1, 3, 4)] == [0, 2 / 3, 3 / 4]
    # ranks 2, 4 and none of 16: (1 - 1/4, 1 - 2/4, 0) on average
    assert (scores["MRR"], scores["Log-Rank"]) == (1 / 2, pytest.approx((3 / 4 + 2 / 4) / 3))


def test_what_is_undefined_is_nan() -> None:
    questions = [
        Question("no gold", "?", answers=("fulda",)),
        Question("gold not shipped", "?", answers=("fulda",), support=(D.id,), gold=Gold(titles=("X",))),
        Question("no answer", "?", support=(D.id,)),
        Question("yes or no", "?", answers=("no", "False"), support=(D.id,)),
    ]
    columns = retrieval_scores(questions, [ranked(D)] * 4, (1,), indexed=3)
    for name in ("recall@1", "hit@1", "precision@1", "MRR", "EM", "F1", "Log-Rank"):
        np.testing.assert_array_equal(columns[name], [np.nan, np.nan, 1, 1])
    for name in ("has-answer@1", "has-answer precision@1"):
        np.testing.assert_array_equal(columns[name], [1, 1, np.nan, np.nan])


def test_the_table_tells_answers_that_say_little(tmp_path) -> None:
    settings = Settings("hotpotqa", "squad", (1,), None, Bootstrap(50, 0), tmp_path)
    questions = [Question(id_, "?", answers=(id_,)) for id_ in ("Fulda", "a", "no")]
    table = evidence_table(questions, [Answer(q.id, "", ranked(B, D)) for q in questions], settings)
    own, without = (table.rows[f"has-answer recall{more}"] for more in ("", ", without answers of one character"))
    assert [cell.value for cell in (*own, *without)] == [50, 100, 0, 100]  # a lake; the Fulda river
    assert "nothing about 1 questions" in table.note
    assert "1 questions have answers of one letter" in table.note


def test_the_log_rank_index_by_hand() -> None:
    # gamma 1: S(r) = 1 - log r / log N, here 1 - log 2 / log 8 = 1 - 1/3
    assert log_rank(2, 8) == pytest.approx(2 / 3)
    # gamma 3, N = 6: 1 - log(1 + 3) / log(1 + 15) = 1 - 1/2
    assert log_rank(2, 6, gamma=3) == pytest.approx(1 / 2)
    assert log_rank_index([1, 2, None], 8) == pytest.approx((1 + 2 / 3 + 0) / 3)  # None counts as the eighth
    assert log_rank(1, 1) == log_rank_index([None], 1) == 1.0  # one segment is first and last
    assert math.isnan(log_rank_index([], 5))
    with pytest.raises(ValueError, match="rank 6 of 5"):
        log_rank(6, 5)


@given(st.integers(2, 10_000), st.floats(0.01, 100), st.data())
def test_it_falls_from_1_to_0_and_faster_with_gamma(segments: int, gamma: float, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, segments - 1))
    here, next_one = log_rank(rank, segments, gamma), log_rank(rank + 1, segments, gamma)
    assert 0 <= next_one < here <= 1
    assert log_rank(1, segments, gamma) == 1
    assert log_rank(segments, segments, gamma) == pytest.approx(0, abs=1e-12)
    assert log_rank(rank, segments, 2 * gamma) <= here + 1e-12


# --- other libraries


def per_question(measure: ir_measures.Measure, labels_QP: np.ndarray, rankings: list[list[str]]) -> list[float]:
    """The library's value for every question, 0 for one without relevant passages."""
    run = [ScoredDoc(str(q), doc, -float(rank)) for q, docs in enumerate(rankings) for rank, doc in enumerate(docs)]
    relevant = {str(q): {str(p): 1 for p in np.flatnonzero(row)} for q, row in enumerate(labels_QP) if row.any()}
    found = {metric.query_id: metric.value for metric in measure.iter_calc(relevant, run)}
    return [found.get(str(q), 0.0) for q in range(len(rankings))]


def test_scores_are_trec_eval_s() -> None:
    rng = np.random.default_rng(7)
    labels_QP = rng.random((QUESTIONS, PASSAGES)) < 0.15
    labels_QP[:, 0] = True  # every question has a gold passage
    rankings = [[str(p) for p in rng.permutation(PASSAGES)[: rng.integers(PASSAGES)]] for _ in range(QUESTIONS)]
    assert min(map(len, rankings)) < 10  # shorter than the greatest k
    asked = [Question(str(q), "?", ("gold",), (), tuple(map(str, np.flatnonzero(y)))) for q, y in enumerate(labels_QP)]
    evidence = [
        [Ranked(Passage(doc, "the gold one" if labels[int(doc)] else "another"), 0.0) for doc in docs]
        for labels, docs in zip(labels_QP, rankings, strict=True)
    ]
    columns = retrieval_scores(asked, evidence, (1, 3, 10))
    theirs = {"MRR": RR}
    for k in (1, 3, 10):
        theirs |= {f"recall@{k}": R @ k, f"hit@{k}": Success @ k, f"precision@{k}": P @ k}
        theirs |= {f"has-answer@{k}": Success @ k, f"has-answer precision@{k}": P @ k}
        shares = [share_found(each.gold_groups, docs[:k]) for each, docs in zip(asked, rankings, strict=True)]
        np.testing.assert_array_equal(columns[f"recall@{k}"], shares)
        np.testing.assert_array_equal(columns.pop(f"all@{k}"), np.array(shares) == 1)
    chosen_QP = np.array([[str(p) in docs for p in range(PASSAGES)] for docs in rankings])
    f1_Q = [f1_score(labels, chosen, zero_division=0) for labels, chosen in zip(labels_QP, chosen_QP, strict=True)]
    np.testing.assert_allclose(columns.pop("F1"), f1_Q, atol=1e-12)
    np.testing.assert_array_equal(columns.pop("EM"), (labels_QP == chosen_QP).all(axis=1))
    assert columns.keys() == theirs.keys()
    for name, measure in theirs.items():
        np.testing.assert_allclose(columns[name], per_question(measure, labels_QP, rankings), atol=1e-12, err_msg=name)
        assert 0 < columns[name].mean() < 1


def test_paired_bootstrap() -> None:
    resamples, confidence = 10_000, 0.95
    differences = np.random.default_rng(2).gamma(1.0, size=120) - 0.8  # skewed: the interval is not symmetric
    ours = paired_intervals(differences[None], resamples, seed=3)[0]
    options = {"n_resamples": resamples, "confidence_level": confidence, "method": "percentile"}
    theirs = bootstrap((differences,), np.mean, **options, rng=np.random.default_rng(4)).confidence_interval
    # A quantile q of R resampled means has the standard error sqrt(q (1 - q) / R) / density at q; both sides have one.
    q = (1 - confidence) / 2
    mean_error = differences.std() / math.sqrt(len(differences))
    quantile_error = mean_error * math.sqrt(q * (1 - q) / resamples) / norm.pdf(norm.ppf(q))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=5 * math.sqrt(2) * quantile_error)
    assert 5 * math.sqrt(2) * quantile_error < 0.25 * mean_error  # strict enough to tell another confidence


def test_the_bootstrap_equals_a_plain_loop_over_the_same_draws_in_any_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(3).normal(size=(2, 7))
    draws = np.random.default_rng(11).integers(0, 7, size=(50, 7))
    means = np.array([[row[draw].mean() for row in differences] for draw in draws])
    expected = np.quantile(means, [0.025, 0.975], axis=0).T
    for cells in (own_bootstrap._CELLS_AT_ONCE, 7 * 20):
        monkeypatch.setattr(own_bootstrap, "_CELLS_AT_ONCE", cells)
        np.testing.assert_allclose(paired_intervals(differences, 50, seed=11), expected, atol=1e-12)
    assert not np.allclose(paired_intervals(differences, 50, seed=6), expected)
    np.testing.assert_allclose(paired_intervals(np.full((1, 5), 0.25), 100), [[0.25, 0.25]])


@pytest.mark.parametrize(("questions", "resamples"), [(0, 10), (3, 0)])
def test_refuses_nothing_to_resample(questions: int, resamples: int) -> None:
    with pytest.raises(ValueError, match="nothing to resample"):
        paired_intervals(np.zeros((1, questions)), resamples)
