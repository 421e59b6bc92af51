"""Platt's calibration: by hand, against a grid, and of scores that tell nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.rerag.calibration import Calibration

pytestmark = pytest.mark.numeric


def platt_loss(scale: float, offset: float, scores: np.ndarray, labels: np.ndarray) -> float:
    positive, negative = labels.sum(), (~labels).sum()
    target = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))
    logits = scale * scores + offset
    return float((np.logaddexp(0, logits) - target * logits).sum())


samples = st.lists(st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@given(samples)
@settings(max_examples=60, deadline=None)
def test_calibration_beats_every_point_of_a_grid(rows: list[tuple[float, bool]]) -> None:
    scores, labels = np.array([s for s, _ in rows]), np.array([y for _, y in rows])
    fitted = Calibration.fit(scores, labels)
    assert fitted.scale > 0
    best = platt_loss(fitted.scale, fitted.offset, scores, labels)
    for scale in [1e-6, *np.geomspace(1e-3, 10, 25), *(fitted.scale * np.array([0.9, 0.99, 1.01, 1.1]))]:
        if scale < 1e-6:
            continue
        for shift in (-2, -0.5, -0.1, -0.01, 0, 0.01, 0.1, 0.5, 2):
            offset = fitted.offset + shift + (fitted.scale - scale) * scores.mean()
            assert best <= platt_loss(scale, offset, scores, labels) + 1e-6 * len(rows)


@given(samples, st.floats(0.01, 100), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_calibrated_probabilities_do_not_depend_on_the_scores_unit(
    rows: list[tuple[float, bool]], unit: float, shift: float
) -> None:
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
def test_constant_scores_give_the_base_rate(scores: list[float]) -> None:
    fitted = Calibration.fit(scores, [True] * 2 + [False] * 5)
    base = (2 * 3 / 4 + 5 * 1 / 7) / 7  # Platt's targets, averaged
    assert 0 < fitted.scale < 1e-5
    assert fitted(scores[0]) == pytest.approx(base, abs=1e-6)


def test_scores_that_say_the_opposite_give_the_base_rate() -> None:
    fitted = Calibration.fit([5, 5, 5, -5], [False, False, False, True])
    base = (2 / 3 + 3 * 1 / 5) / 4
    assert fitted.scale == pytest.approx(1e-6)
    assert [fitted(5), fitted(-5)] == pytest.approx([base, base], abs=1e-4)


def test_calibration_refuses_what_it_cannot_fit() -> None:
    with pytest.raises(ValueError, match="with and without an answer"):
        Calibration.fit([1, 2], [True, True])
    with pytest.raises(ValueError, match="as many scores as labels"):
        Calibration.fit([1, 2], [True])
    with pytest.raises(ValueError, match="finite"):
        Calibration.fit([1, math.nan], [True, False])
