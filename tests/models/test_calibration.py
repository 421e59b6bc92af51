"""Logistic fits: Platt scaling and the model of P(right), by hand and against SciPy and scikit-learn."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from common.errors import ArtifactError, MissingInputError
from models.calibration import MIN_SCALE, Calibration
from models.msrag.answer_model import ANSWER_MODEL, AnswerModel

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
    for score in (0.1, -3e8, 0.0):
        alike = Calibration.fit([score] * 7, [True] * 2 + [False] * 5)  # the base rate: the mean of Platt's targets
        assert alike(score) == pytest.approx((2 * 3 / 4 + 5 * 1 / 7) / 7, abs=1e-6)
        assert 0 < alike.scale < 1e-5
    assert Calibration()(-800.0) == 0
    assert Calibration()(800.0) == 1


def data(count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    values = random.normal(size=(count, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 1.0]
    right = values[:, 0] + values[:, 1] / 20 + random.normal(size=count) > 0.3
    return values, right


def test_the_fit_is_that_of_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    values, right = data()
    model = AnswerModel.fit(["a", "b", "c"], values, right, penalty=2.0)
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    other = linear.LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(standard, right)
    np.testing.assert_allclose(model.weights, other.coef_[0], atol=1e-5)
    np.testing.assert_allclose(model.probabilities(values), other.predict_proba(standard)[:, 1], atol=1e-5)


def test_a_constant_feature_has_no_weight_and_separable_answers_have_a_finite_fit() -> None:
    values, _ = data()
    values[:, 2] = 7.0
    right = values[:, 0] > 0
    model = AnswerModel.fit(["a", "b", "c"], values, right)
    assert model.weights[2] == pytest.approx(0, abs=1e-9)
    assert np.isfinite(model.weights).all()
    assert ((model.probabilities(values) > 0.5) == right).mean() > 0.97


def test_its_file_is_read_back_exactly_and_refused_when_it_was_changed(tmp_path) -> None:
    values, right = data()
    model = AnswerModel.fit(["a", "b", "c"], values, right)
    file = tmp_path / "selector.json"
    ANSWER_MODEL.write(file, model.content)
    again = ANSWER_MODEL.read(file)
    assert again == model
    assert (again.probabilities(values) == model.probabilities(values)).all()
    assert ANSWER_MODEL.is_one(file)
    file.write_text(file.read_text().replace('"penalty": 1.0', '"penalty": 2.0'))
    with pytest.raises(ArtifactError, match="was edited"):
        ANSWER_MODEL.read(file)
    file.write_text(json.dumps({"kind": "other"}))
    assert not ANSWER_MODEL.is_one(file)
    with pytest.raises(ArtifactError):
        ANSWER_MODEL.read(file)
    with pytest.raises(MissingInputError, match=r"infer\.py tune"):
        ANSWER_MODEL.read(tmp_path / "no.json")
    assert not ANSWER_MODEL.is_one(tmp_path)
