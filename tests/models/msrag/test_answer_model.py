"""The logistic model of P(right): the optimum against scikit-learn, constant features, its file."""

import json

import numpy as np
import pytest

from common.errors import ArtifactError, MissingInputError
from models.msrag.answer_model import ANSWER_MODEL, AnswerModel


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
    text = file.read_text()
    file.write_text(text.replace('"penalty": 1.0', '"penalty": 2.0'))
    with pytest.raises(ArtifactError, match="was edited"):
        ANSWER_MODEL.read(file)
    file.write_text(json.dumps({"kind": "other"}))
    assert not ANSWER_MODEL.is_one(file)
    with pytest.raises(ArtifactError):
        ANSWER_MODEL.read(file)
    with pytest.raises(MissingInputError, match=r"infer\.py tune"):
        ANSWER_MODEL.read(tmp_path / "no.json")
    assert not ANSWER_MODEL.is_one(tmp_path)
