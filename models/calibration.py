"""Platt scaling: maps relevance logits to the probability that a context contains the answer.

RE-RAG's losses do not change when a constant is added to all scores of a question (docs/paper_decisions.md), so one
scale and one offset are fitted on validation and exported with the model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch.nn import functional as F

MIN_SCALE = 1e-6  # for scores that carry no information, or rank the wrong way


@dataclass(frozen=True, slots=True)
class Calibration:
    """P(relevant) = σ(scale · score + offset); nats in, a probability out."""

    scale: float = 1.0
    offset: float = 0.0

    @property
    def is_fitted(self) -> bool:
        """Whether validation gave it; a model without one has the identity."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def __call__(self, score: float) -> float:
        """Probability in [0, 1] of one relevance logit."""
        logit = self.scale * score + self.offset
        return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))

    @classmethod
    @torch.inference_mode(False)  # validation runs in inference mode, which has no gradients
    def fit(cls, scores: Sequence[float], labels: Sequence[bool]) -> Self:
        """Maximum likelihood by L-BFGS in float64, on Platt's softened targets (Platt 1999; Lin, Lin and Weng 2007).

        A label becomes (n₊ + 1) / (n₊ + 2) or 1 / (n₋ + 2), so that separable scores have a finite fit too.  The scale
        is kept positive: calibration must not reverse the ranking.

        Args:
            scores: Relevance logits, nats.
            labels: Whether each context is relevant.

        Raises:
            ValueError: If a class is missing, the lengths differ, or a score is not finite.
        """
        x_P = torch.as_tensor(np.asarray(scores, dtype=np.float64))
        positive_P = torch.as_tensor(np.asarray(labels, dtype=bool))
        if x_P.shape != positive_P.shape:
            raise ValueError(f"as many scores as labels are needed, got {len(x_P)} and {len(positive_P)}")
        n_positive, n_negative = int(positive_P.sum()), int((~positive_P).sum())
        if not n_positive or not n_negative:
            raise ValueError("calibration needs contexts with and without an answer")
        if not x_P.isfinite().all():
            raise ValueError("calibration needs finite scores")
        high, low = x_P.new_tensor([(n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)])
        target_P = torch.where(positive_P, high, low)
        center, spread = float(x_P.mean()), float(x_P.std(correction=0))
        constant = spread <= 1e-12 * float(x_P.abs().max())  # rounding errors, from which no scale can be fitted
        z_P = torch.zeros_like(x_P) if constant else (x_P - center) / spread
        weight = x_P.new_tensor([0.0, math.log((n_positive + 1) / (n_negative + 1))]).requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weight], max_iter=500, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
        )

        def loss() -> float:
            optimizer.zero_grad()
            nats = F.binary_cross_entropy_with_logits(weight[0] * z_P + weight[1], target_P)
            nats.backward()
            return nats.item()

        optimizer.step(loss)
        slope, offset = weight.tolist()
        scale = 0.0 if constant else slope / spread
        if scale < MIN_SCALE:  # the loss is convex: the best allowed scale is the least, with an offset fitted to it
            mean = float(target_P.mean())
            scale, offset = MIN_SCALE, math.log(mean / (1 - mean))
        return cls(scale, offset - scale * center)
