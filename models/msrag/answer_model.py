"""A logistic model of P(answer is right) from features of the answers of several sources.

Fitted by Newton's method, stored as sealed JSON.

Shape legend: N answers, F features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from common.fitted_files import FittedFile

KIND = "answer selector"
_FORMAT = 1
_FIELDS = {
    "kind": [KIND],
    "format": [_FORMAT],
    "encoder": str,
    "encoder_sha256": str,
    "penalty": float,
    "offset": float,
}
_LISTS = ("features", "means", "scales", "weights")
_OTHERS = ("offset", "penalty", "encoder", "encoder_sha256", "fitted")
_STEPS, _TOLERANCE = 100, 1e-10


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """log-odds = offset + sum over features of weight * (value - mean) / scale."""

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]  # standard deviations; 1 where a feature is constant
    weights: tuple[float, ...]  # of the standardized features
    offset: float
    penalty: float  # L2, on the weights of standardized features
    encoder: str = ""  # of the features that are cosines
    encoder_sha256: str = ""
    fitted: Mapping[str, Any] = field(default_factory=dict)  # questions, file, measures; for people

    @classmethod
    def fit(
        cls, features: Sequence[str], values_NF: NDArray[np.float64], right_N: NDArray[np.bool_], penalty: float = 1.0
    ) -> Self:
        """Maximum likelihood with an L2 penalty on the weights, by Newton's method in float64.

        Args:
            features: Their names.
            values_NF: One row per answer.
            right_N: Whether the answer is right.
            penalty: Half of it times the squared weights is added to the loss, in nats.

        Raises:
            ValueError: If all answers are right or all are wrong, or a value is not finite.
        """
        if right_N.all() or not right_N.any():
            raise ValueError("right and wrong answers are needed")
        if not np.isfinite(values_NF).all():
            raise ValueError("finite features are needed")
        means_F, scales_F = values_NF.mean(axis=0), values_NF.std(axis=0)
        scales_F = np.where(scales_F > 1e-9, scales_F, 1.0)
        x_NF = np.hstack([(values_NF - means_F) / scales_F, np.ones((len(values_NF), 1))])
        penalties_F = np.append(np.full(len(features), penalty), 1e-9)  # the offset is free
        weights_F = np.zeros(len(penalties_F))
        for _ in range(_STEPS):
            p_N = _sigmoid(x_NF @ weights_F)
            gradient_F = x_NF.T @ (p_N - right_N) + penalties_F * weights_F
            hessian_FF = (x_NF.T * (p_N * (1 - p_N))) @ x_NF + np.diag(penalties_F)
            step_F = np.linalg.solve(hessian_FF, gradient_F)
            size = 1.0
            loss = _loss(x_NF, right_N, penalties_F, weights_F)
            while size > 1e-6 and _loss(x_NF, right_N, penalties_F, weights_F - size * step_F) > loss:
                size /= 2
            weights_F = weights_F - size * step_F
            if np.abs(size * step_F).max() < _TOLERANCE:
                break
        *weights, offset = map(float, weights_F)
        return cls(tuple(features), tuple(means_F.tolist()), tuple(scales_F.tolist()), tuple(weights), offset, penalty)

    def probabilities(self, values_NF: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(right) of every answer, (N,)."""
        x_NF = (np.asarray(values_NF, dtype=np.float64) - np.array(self.means)) / np.array(self.scales)
        return _sigmoid(x_NF @ np.array(self.weights) + self.offset)

    @property
    def content(self) -> dict[str, Any]:
        """Of its file."""
        return {"kind": KIND, "format": _FORMAT, **asdict(self)}


def _model(content: dict[str, Any]) -> AnswerModel:
    lists: dict[str, Any] = {name: tuple(content[name]) for name in _LISTS}
    if len({len(each) for each in lists.values()}) > 1:
        raise ValueError("lists of different lengths")
    return AnswerModel(**lists, **{name: content[name] for name in _OTHERS})


ANSWER_MODEL = FittedFile("a fitted selector", _model, _FIELDS)


def _sigmoid(x_N: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0.0, -x_N))


def _loss(
    x_NF: NDArray[np.float64],
    right_N: NDArray[np.bool_],
    penalties_F: NDArray[np.float64],
    weights_F: NDArray[np.float64],
) -> float:
    logits_N = x_NF @ weights_F
    nats = np.logaddexp(0.0, np.where(right_N, -logits_N, logits_N)).sum()
    return float(nats + (penalties_F * weights_F**2).sum() / 2)
