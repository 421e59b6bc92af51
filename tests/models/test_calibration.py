"""Platt scaling by hand, against a grid and SciPy's optimizer, and of scores without information."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from models.calibration import MIN_SCALE, Calibration

pytestmark = pytest.mark.numeric


samples = st.lists(st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def best_probabilities(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of SciPy's trust-region Newton method on standardized scores, or the mean target where scale must not be."""
    positive, negative = labels.sum(), (~labels).sum()
    target = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))
    spread = scores.std()
    if spread <= 1e-12 * np.abs(scores).max():
        return np.full(len(scores), target.mean())
    z_2P = np.stack([(scores - scores.mean()) / spread, np.ones(len(scores))])

    def loss(w: np.ndarray) -> float:
        return float((np.logaddexp(0, w @ z_2P) - target * (w @ z_2P)).mean())

    def gradient(w: np.ndarray) -> np.ndarray:
        return z_2P @ (expit(w @ z_2P) - target) / len(scores)

    def hessian(w: np.ndarray) -> np.ndarray:
        p = expit(w @ z_2P)
        return (z_2P * p * (1 - p)) @ z_2P.T / len(scores)

    start = np.array([0.0, logit(target.mean())])
    w = minimize(loss, start, method="trust-exact", jac=gradient, hess=hessian, options={"gtol": 1e-11}).x
    return expit(w @ z_2P) if w[0] / spread >= MIN_SCALE else np.full(len(scores), target.mean())


few_values = st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.25, 8.0]), st.booleans()), min_size=2, max_size=40)
separable = st.lists(st.floats(-30, 30), min_size=2, max_size=40).map(lambda xs: [(x, x >= max(xs)) for x in xs])
constant = st.tuples(st.floats(-1e6, 1e6), st.lists(st.booleans(), min_size=2)).map(lambda c: [(c[0], y) for y in c[1]])


@given((samples | few_values | separable | constant).filter(lambda rows: len({label for _, label in rows}) == 2))
@settings(max_examples=100, deadline=None)
def test_calibration_is_the_optimum_that_scipy_finds(rows) -> None:
    scores, labels = np.array([s for s, _ in rows]), np.array([y for _, y in rows])
    with torch.inference_mode():  # as in validation
        fitted = Calibration.fit(scores, labels)
    assert fitted == Calibration.fit(scores, labels)
    # Where the scale is the least one, the span of the scores moves the probabilities by that much.
    slack = 1e-6 + (MIN_SCALE * np.ptp(scores) if fitted.scale == MIN_SCALE else 0)
    np.testing.assert_allclose([fitted(s) for s in scores], best_probabilities(scores, labels), rtol=0, atol=slack)


@given(samples, st.floats(0.01, 100), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_calibrated_probabilities_do_not_depend_on_the_scores_unit(rows, unit, shift) -> None:
    scores, labels = np.round([s for s, _ in rows], 2), [y for _, y in rows]
    one, other = Calibration.fit(scores, labels), Calibration.fit(scores * unit + shift, labels)
    if one.scale > 1e-4 and other.scale > 1e-4:
        for score in scores:
            assert other(score * unit + shift) == pytest.approx(one(score), abs=1e-4)


def test_calibration_by_hand() -> None:
    # Two scores, one label each: separable, so p(1) = 2/3 and p(0) = 1/3, Platt's targets: logits ±ln 2.
    fitted = Calibration.fit([0.0, 1.0], [False, True])
    assert fitted.scale == pytest.approx(2 * math.log(2), rel=1e-6)
    assert fitted.offset == pytest.approx(-math.log(2), rel=1e-6)
    assert fitted(1) == pytest.approx(2 / 3)
    assert Calibration()(-800.0) == 0
    assert Calibration()(800.0) == 1


@pytest.mark.parametrize("scores", [[0.1] * 7, [-3e8] * 7, [0.0] * 7])
def test_constant_scores_give_the_base_rate(scores) -> None:
    fitted = Calibration.fit(scores, [True] * 2 + [False] * 5)
    base = (2 * 3 / 4 + 5 * 1 / 7) / 7  # Platt's targets, averaged
    assert 0 < fitted.scale < 1e-5
    assert fitted(scores[0]) == pytest.approx(base, abs=1e-6)
