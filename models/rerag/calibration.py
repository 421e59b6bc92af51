"""Platt scaling: maps relevance logits to the probability that a context contains the answer.

RE-RAG's losses do not determine the absolute level of the scores (docs/paper_decisions.md), so a scale and an offset
are fitted on validation data and exported with the model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

MIN_SCALE = 1e-6  # for scores that are uninformative or inversely related to the labels


@dataclass(frozen=True, slots=True)
class Calibration:
    """P(relevant) = σ(scale · score + offset), with scores in nats."""

    scale: float = 1.0
    offset: float = 0.0

    def __call__(self, score: float) -> float:
        """Calibrated probability, in [0, 1], of one relevance logit."""
        logit = self.scale * score + self.offset
        return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))

    @classmethod
    def fit(cls, scores: Sequence[float], labels: Sequence[bool], iterations: int = 100) -> Self:
        """Maximum-likelihood fit by Newton's method on Platt's smoothed targets (Platt 1999; Lin, Lin and Weng 2007).

        Targets are (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), so that the fit is finite for separable scores.  The scale
        stays positive, so that calibration never reverses the ranking.

        Raises:
            ValueError: If all labels are equal, the lengths differ, or a score is not finite.
        """
        x = np.asarray(scores, dtype=np.float64)
        positive = np.asarray(labels, dtype=bool)
        if x.shape != positive.shape:
            raise ValueError(f"as many scores as labels are needed, got {len(x)} and {len(positive)}")
        if positive.all() or not positive.any():
            raise ValueError("calibration needs contexts with and without an answer")
        n_positive, n_negative = positive.sum(), (~positive).sum()
        target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
        if not np.isfinite(x).all():
            raise ValueError("calibration needs finite scores")
        center, spread = x.mean(), x.std()
        constant = spread <= 1e-12 * np.abs(x).max()  # the spread is rounding error: no scale can be fitted
        z = np.zeros_like(x) if constant else (x - center) / spread
        w = np.array([0.0, math.log((n_positive + 1) / (n_negative + 1))])

        def loss(w: np.ndarray) -> float:
            logit = w[0] * z + w[1]
            return float((np.logaddexp(0, logit) - target * logit).sum())

        for _ in range(iterations):
            p = 1 / (1 + np.exp(-np.clip(w[0] * z + w[1], -500, 500)))
            gradient = np.array([((p - target) * z).sum(), (p - target).sum()])
            v = p * (1 - p)
            hessian = np.array([[(v * z * z).sum(), (v * z).sum()], [(v * z).sum(), v.sum()]]) + 1e-9 * np.eye(2)
            step, rate = np.linalg.solve(hessian, gradient), 1.0
            while rate > 1e-8 and loss(w - rate * step) > loss(w):
                rate /= 2
            w = w - rate * step
            if np.abs(gradient).max() < 1e-9 * len(x):
                break
        scale = 0.0 if constant else float(w[0] / spread)
        if scale < MIN_SCALE:  # the loss is convex: the optimum is at the bound, with another offset
            scale, w[1] = MIN_SCALE, math.log(target.mean() / (1 - target.mean()))
        return cls(scale, float(w[1] - scale * center))
