"""The paired bootstrap against a plain loop, a closed form, and itself."""

import numpy as np
import pytest

from harness.evaluation import bootstrap
from harness.evaluation.bootstrap import paired_intervals

pytestmark = pytest.mark.numeric


def test_equals_a_plain_loop_over_the_same_draws():
    random = np.random.default_rng(3)
    differences = random.normal(size=(2, 7))
    draws = np.random.default_rng(11).integers(0, 7, size=(50, 7))
    means = np.array([[row[draw].mean() for row in differences] for draw in draws])
    expected = np.quantile(means, [0.05, 0.95], axis=0).T
    np.testing.assert_allclose(paired_intervals(differences, 50, seed=11, confidence=0.9), expected, atol=1e-12)


def test_width_is_that_of_the_normal_approximation():
    differences = np.random.default_rng(0).normal(0.1, 1.0, size=(1, 900))
    low, high = paired_intervals(differences, 10_000, seed=1)[0]
    standard_error = differences.std() / np.sqrt(900)
    assert high - low == pytest.approx(2 * 1.96 * standard_error, rel=0.04)
    assert (low + high) / 2 == pytest.approx(differences.mean(), abs=0.1 * standard_error)


def test_steps_do_not_change_the_draws(monkeypatch):
    differences = np.random.default_rng(0).normal(size=(3, 20))
    whole = paired_intervals(differences, 100, seed=5)
    monkeypatch.setattr(bootstrap, "_CELLS_AT_ONCE", 20 * 7)
    np.testing.assert_allclose(paired_intervals(differences, 100, seed=5), whole, atol=1e-12)
    assert not np.allclose(paired_intervals(differences, 100, seed=6), whole)


def test_a_constant_difference_has_no_width():
    np.testing.assert_allclose(paired_intervals(np.full((1, 5), 0.25), 100), [[0.25, 0.25]])


@pytest.mark.parametrize(("questions", "resamples", "confidence"), [(0, 10, 0.95), (3, 0, 0.95), (3, 10, 1.0)])
def test_refuses_nothing_to_resample(questions, resamples, confidence):
    with pytest.raises(ValueError, match=r"nothing to resample|between 0 and 1"):
        paired_intervals(np.zeros((1, questions)), resamples, 0, confidence)
