"""The rules by which a run has learned: their figures against a brute force, and what is told of them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from trainers.run.learning import CHANCE_NATS, RULES, doubts, explained

RNG = np.random.default_rng(0)
LABELS = np.arange(400) % 5 == 0  # one in five, as in DR-RAG's validation
ENTROPY = 400 * -(0.2 * np.log(0.2) + 0.8 * np.log(0.8))


def scores(separation: float) -> np.ndarray:
    """Log-odds whose means differ by so many standard deviations between the labels, at the scale of P(label)."""
    return separation * (RNG.normal(size=400) + separation * LABELS)


@pytest.mark.parametrize("separation", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("level", [-4.0, 0.0, 9.0])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_share_of_the_labels_that_scores_explain_by_brute_force(separation, level, scale) -> None:
    given = scale * scores(separation) + level

    def nats(weights: np.ndarray) -> float:
        return -np.log(expit(np.where(LABELS, 1, -1) * (weights[0] * given + weights[1]))).sum()

    best = minimize(nats, [0.1 / scale, -level / scale], bounds=[(0, 1), (None, None)], tol=1e-12).fun
    gain = explained([(given, LABELS)]) * ENTROPY + CHANCE_NATS
    assert 0.95 * (ENTROPY - best) - 1e-6 <= gain <= ENTROPY - best + 1e-6  # the scales that are tried lie apart


def test_what_explains_nothing() -> None:
    ranked = LABELS * 0.01  # a perfect order, but hardly a difference: what a network gives whose features have died
    for nothing in (np.zeros(400), np.full(400, 7.0), RNG.normal(size=400), -5.0 * LABELS, ranked):
        assert doubts({"explained": explained([(nothing, LABELS)])})
    assert not doubts({"explained": explained([(2000.0 * LABELS - 1000, LABELS)])})
    assert explained([(300.0 * LABELS, LABELS)]) == pytest.approx(1 - CHANCE_NATS / ENTROPY, abs=1e-3)


def test_groups_have_their_own_constants_and_one_without_both_labels_is_left_out() -> None:
    other = ~LABELS  # a strategy that helps four of five: a constant for both would explain nothing of it
    together = explained([(100.0 * LABELS, LABELS), (np.zeros(400), other), (np.zeros(9), np.ones(9))])
    assert together == pytest.approx((1 - 2 * CHANCE_NATS / ENTROPY) / 2, abs=0.01)
    assert np.isnan(explained([(np.zeros(9), np.ones(9)), ([], [])]))


DOUBTED = [
    *({"explained": 0.0021, "auc": 0.56}, {"explained": float("nan")}, {"loss_drop": 0.004, "f1": 0.3}),
    *({"loss_drop": -0.2}, {"unchanged": 0.97}, {"empty": 1.0}, {"refused_answerable": 1.0, "explained": 0.3}),
]
GOOD = [
    *({"explained": 0.02}, {"loss_drop": 0.5}, {"unchanged": 0.9, "empty": 0.1}, {"refused_answerable": 0.04}, {}),
]


def test_what_is_told_of_a_validation() -> None:
    for metrics in DOUBTED:
        (told,) = doubts(metrics)
        assert f"val/{next(iter(metrics))} " in told
    assert not any(map(doubts, GOOD))


def test_every_rule_that_is_broken_is_told() -> None:
    assert len(doubts(dict.fromkeys(RULES, float("nan")))) == len(RULES)
