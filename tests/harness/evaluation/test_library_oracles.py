"""Recall, hit rate, precision and MRR against ir_measures (trec_eval), and the paired bootstrap against SciPy's."""

import math

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, P, R, ScoredDoc, Success
from scipy.stats import bootstrap, norm
from sklearn.metrics import f1_score

from common.records import Passage, Question, Ranked
from common.retrieval import share_found
from harness.evaluation import bootstrap as own_bootstrap
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.rerag.tables import recall_table
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Bootstrap
from trainers.rerag_validation import RECALL_AT, QuestionScores, summarize

QUESTIONS, PASSAGES = 40, 25
Judgments = dict[str, dict[str, int]]


def per_question(measure: ir_measures.Measure, relevant: Judgments, ranked: list[list[str]]) -> list[float]:
    """The library's value for every question, 0 for one without relevant passages."""
    run = [ScoredDoc(str(q), doc, -float(rank)) for q, docs in enumerate(ranked) for rank, doc in enumerate(docs)]
    found = {metric.query_id: metric.value for metric in measure.iter_calc(relevant, run)}
    return [found.get(str(q), 0.0) for q in range(len(ranked))]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def judgments(labels_QP: np.ndarray) -> Judgments:
    return {
        str(q): {str(p): 1 for p in np.flatnonzero(labels_P)} for q, labels_P in enumerate(labels_QP) if labels_P.any()
    }


def test_recall_of_gold_passages(rng: np.random.Generator) -> None:
    labels_QP = rng.random((QUESTIONS, PASSAGES)) < 0.15
    labels_QP[:, 0] = True  # every question has a gold passage
    ranked = [[str(p) for p in rng.permutation(PASSAGES)] for _ in range(QUESTIONS)]
    asked = [
        Question(str(q), "?", support=tuple(str(p) for p in np.flatnonzero(labels)))
        for q, labels in enumerate(labels_QP)
    ]
    for k in (1, 3, 10):
        ours = np.array([share_found(each.gold_groups, docs[:k]) for each, docs in zip(asked, ranked, strict=True)])
        np.testing.assert_allclose(ours, per_question(R @ k, judgments(labels_QP), ranked), atol=1e-12)
        assert 0 < ours.mean() < 1


def test_retrieval_scores(rng: np.random.Generator) -> None:
    labels_QP = rng.random((QUESTIONS, PASSAGES)) < 0.15
    labels_QP[:, 0] = True  # every question has a gold passage
    ranked = [[str(p) for p in rng.permutation(PASSAGES)[: rng.integers(PASSAGES)]] for _ in range(QUESTIONS)]
    assert min(map(len, ranked)) < 10  # shorter than the greatest k
    asked = [
        Question(str(q), "?", answers=("gold",), support=tuple(str(p) for p in np.flatnonzero(labels)))
        for q, labels in enumerate(labels_QP)
    ]
    evidence = [
        [Ranked(Passage(doc, "the gold one" if labels[int(doc)] else "another"), 0.0) for doc in docs]
        for labels, docs in zip(labels_QP, ranked, strict=True)
    ]
    columns = retrieval_scores(asked, evidence, (1, 3, 10))
    relevant = judgments(labels_QP)
    theirs = {"MRR": RR}
    for k in (1, 3, 10):
        theirs |= {
            f"recall@{k}": R @ k,
            f"hit@{k}": Success @ k,
            f"precision@{k}": P @ k,
            f"has-answer@{k}": Success @ k,
            f"has-answer precision@{k}": P @ k,
        }
    for k in (1, 3, 10):
        whole = per_question(R @ k, relevant, ranked) == 1
        np.testing.assert_array_equal(columns.pop(f"all@{k}"), whole)
    chosen_QP = np.array([[str(p) in docs for p in range(PASSAGES)] for docs in ranked])
    f1_Q = [f1_score(labels, chosen, zero_division=0) for labels, chosen in zip(labels_QP, chosen_QP, strict=True)]
    np.testing.assert_allclose(columns.pop("F1"), f1_Q, atol=1e-12)
    np.testing.assert_array_equal(columns.pop("EM"), (labels_QP == chosen_QP).all(axis=1))
    assert columns.keys() == theirs.keys()
    for name, measure in theirs.items():
        np.testing.assert_allclose(columns[name], per_question(measure, relevant, ranked), atol=1e-12, err_msg=name)
        assert 0 < columns[name].mean() < 1


def test_has_answer_recall_and_mrr_of_validation(rng: np.random.Generator) -> None:
    labels_QP = rng.random((QUESTIONS, PASSAGES)) < 0.08
    assert not labels_QP.any(axis=1).all()  # some questions have no relevant context
    scores_QP = rng.normal(size=labels_QP.shape)
    ranked = [[str(p) for p in np.argsort(-scores_P)] for scores_P in scores_QP]
    rows = [
        QuestionScores(q, tuple(s.tolist()), tuple(y.tolist()))
        for q, (s, y) in enumerate(zip(scores_QP, labels_QP, strict=True))
    ]
    metrics = summarize(rows, ranked=True, draw=False).metrics
    relevant = judgments(labels_QP)
    assert metrics["mrr"] == pytest.approx(np.mean(per_question(RR, relevant, ranked)), abs=1e-12)
    for k in RECALL_AT:
        assert metrics[f"recall_{k}"] == pytest.approx(np.mean(per_question(Success @ k, relevant, ranked)))


def test_has_answer_recall_of_the_report(rng: np.random.Generator) -> None:
    labels_QP = rng.random((QUESTIONS, PASSAGES)) < 0.08
    passages = tuple(Passage.of(str(p), f"text {p}") for p in range(PASSAGES))
    logits_QP = rng.normal(size=labels_QP.shape)
    pools = [
        CandidateSet(Question(str(q), "?"), passages, -np.arange(PASSAGES), logits_P, labels_P)
        for q, (logits_P, labels_P) in enumerate(zip(logits_QP, labels_QP, strict=True))
    ]
    table = recall_table(pools, (1, 5, 20), Bootstrap(resamples=10), None)
    orders = {
        "retriever": [[str(p) for p in range(PASSAGES)]] * QUESTIONS,
        "RE": [[str(p) for p in np.argsort(-logits_P)] for logits_P in logits_QP],
    }
    for name, ranked in orders.items():
        for cell, k in zip(table.rows[name], (1, 5, 20), strict=False):
            expected = 100 * np.mean(per_question(Success @ k, judgments(labels_QP), ranked))
            assert cell is not None
            assert cell.value == pytest.approx(expected)


def test_paired_bootstrap() -> None:
    resamples, confidence = 10_000, 0.95
    differences = np.random.default_rng(2).gamma(1.0, size=120) - 0.8  # skewed: the interval is not symmetric
    ours = paired_intervals(differences[None], resamples, seed=3)[0]
    theirs = bootstrap(
        (differences,), np.mean, n_resamples=resamples, confidence_level=confidence, method="percentile",
        rng=np.random.default_rng(4),
    ).confidence_interval  # fmt: skip
    # A quantile q of R resampled means has the standard error sqrt(q (1 - q) / R) / density at q; both sides have one.
    q = (1 - confidence) / 2
    mean_error = differences.std() / math.sqrt(len(differences))
    quantile_error = mean_error * math.sqrt(q * (1 - q) / resamples) / norm.pdf(norm.ppf(q))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=5 * math.sqrt(2) * quantile_error)
    assert 5 * math.sqrt(2) * quantile_error < 0.25 * mean_error  # strict enough to tell another confidence


def test_equals_a_plain_loop_over_the_same_draws():
    random = np.random.default_rng(3)
    differences = random.normal(size=(2, 7))
    draws = np.random.default_rng(11).integers(0, 7, size=(50, 7))
    means = np.array([[row[draw].mean() for row in differences] for draw in draws])
    expected = np.quantile(means, [0.025, 0.975], axis=0).T
    np.testing.assert_allclose(paired_intervals(differences, 50, seed=11), expected, atol=1e-12)


def test_steps_do_not_change_the_draws(monkeypatch):
    differences = np.random.default_rng(0).normal(size=(3, 20))
    whole = paired_intervals(differences, 100, seed=5)
    monkeypatch.setattr(own_bootstrap, "_CELLS_AT_ONCE", 20 * 7)
    np.testing.assert_allclose(paired_intervals(differences, 100, seed=5), whole, atol=1e-12)
    assert not np.allclose(paired_intervals(differences, 100, seed=6), whole)


def test_a_constant_difference_has_no_width():
    np.testing.assert_allclose(paired_intervals(np.full((1, 5), 0.25), 100), [[0.25, 0.25]])


@pytest.mark.parametrize(("questions", "resamples"), [(0, 10), (3, 0)])
def test_refuses_nothing_to_resample(questions, resamples):
    with pytest.raises(ValueError, match="nothing to resample"):
        paired_intervals(np.zeros((1, questions)), resamples)
