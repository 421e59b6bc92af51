"""Unanswerable questions (RE-RAG, Section 5.3): detection by a confidence threshold.

A question is predicted unanswerable if all its kept contexts score below the threshold, which training chooses on
validation: by the paper's best F1, or by a stated cost of refusing. "Unanswerable" is the positive class, as in the
paper's Table 4. Shape legend: N questions.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.metrics import scores_and_labels

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)  # as in the paper


@dataclass(frozen=True, slots=True)
class Detection:
    """Precision, recall and F1 of predicting "unanswerable" at one threshold (Table 4), each in [0, 1]."""

    threshold: float
    precision: float  # share of unanswerable questions among the refused; 0 when none is refused
    recall: float  # share of refused questions among the unanswerable; 0 when there are none
    f1: float
    refused: int = 0  # number of refused questions; without any, precision is undefined


def detection(max_probability_N: ArrayLike, answerable_N: ArrayLike, threshold: float) -> Detection:
    """Precision, recall and F1 of predicting "unanswerable" where the best context scores below the threshold.

    Args:
        max_probability_N: Maximum score among each question's contexts; -inf for a question without contexts.
        answerable_N: Whether one of its contexts contains an answer.
        threshold: Minimum score at which a question is answered.

    Raises:
        ValueError: If there is no question, a confidence is NaN or the lengths differ.
    """
    max_probability_N, answerable_N = scores_and_labels(max_probability_N, answerable_N)
    refused_N = max_probability_N < threshold
    hits = int((refused_N & ~answerable_N).sum())
    refused, unanswerable = int(refused_N.sum()), int((~answerable_N).sum())
    precision = hits / refused if refused else 0.0
    recall = hits / unanswerable if unanswerable else 0.0
    f1 = 2 * hits / (refused + unanswerable) if refused + unanswerable else 0.0
    return Detection(threshold, precision, recall, f1, refused)


def sweep(
    max_probability_N: ArrayLike, answerable_N: ArrayLike, thresholds: Sequence[float] = THRESHOLDS
) -> list[Detection]:
    """`detection` at every threshold, in the given order.  Raises as `detection`, and ValueError without thresholds."""
    if not thresholds:
        raise ValueError("no threshold to try")
    return [detection(max_probability_N, answerable_N, threshold) for threshold in thresholds]


def best_refusal_threshold(
    max_probabilities: ArrayLike, answerable: ArrayLike, thresholds: Sequence[float] = THRESHOLDS
) -> tuple[float, float]:
    """The threshold with the highest F1 of predicting "unanswerable", and that F1; the lowest threshold among ties.

    Args:
        max_probabilities: (N,) maximum calibrated P(relevant) among each question's contexts.
        answerable: (N,) whether one of its contexts contains an answer.
        thresholds: Candidates; the paper sweeps 0.5 to 0.9.

    Raises:
        ValueError: If there is no question or no threshold, a probability is NaN or the lengths differ.
    """
    best = max(sweep(max_probabilities, answerable, thresholds), key=lambda d: (d.f1, -d.threshold))
    return best.threshold, best.f1


def cheapest_refusal_threshold(
    max_probabilities: ArrayLike, answerable: ArrayLike, refusal_cost: float
) -> tuple[float, float]:
    """The threshold with the lowest expected cost per question, and that cost; the lowest threshold among ties.

        cost(t) = (refusal_cost · answerable questions refused + unanswerable questions answered) / N

    The cost depends on the share v of unanswerable questions among these N.  Where another share s is expected in
    serving, give refusal_cost · (1 - s) v / (s (1 - v)): it chooses the threshold of lowest cost at that share.

    Args:
        max_probabilities: (N,) maximum calibrated P(relevant) among each question's contexts.
        answerable: (N,) whether one of its contexts contains an answer.
        refusal_cost: Cost of refusing an answerable question; answering an unanswerable one costs 1.

    Returns:
        A threshold in [0, 1], one of: 0 (nothing is refused), a value between two neighbouring probabilities, 1.

    Raises:
        ValueError: If there is no question, a probability is NaN or the lengths differ.
    """
    max_probability_N, answerable_N = scores_and_labels(max_probabilities, answerable)
    known = np.unique(max_probability_N[np.isfinite(max_probability_N)])
    thresholds = [0.0, *(_between(low, high) for low, high in itertools.pairwise(known.tolist())), 1.0]

    def cost(threshold: float) -> float:
        refused_N = max_probability_N < threshold
        wrong = refusal_cost * (refused_N & answerable_N).sum() + (~refused_N & ~answerable_N).sum()
        return float(wrong / len(answerable_N))

    return min(((threshold, cost(threshold)) for threshold in thresholds), key=lambda found: found[::-1])


def _between(low: float, high: float) -> float:
    """The middle of two probabilities, to four digits where that lies between them."""
    middle = (low + high) / 2
    return next(value for value in (round(middle, 4), middle, high) if low < value <= high)
