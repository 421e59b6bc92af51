"""Metrics of a binary classifier, as pure functions of scores and labels (NumPy arrays of shape (P,), P triples)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from models.metrics import auroc

Floats = NDArray[np.floating[Any]]
Criterion = Literal["f1", "f2", "balanced_accuracy"]


def auc(scores_P: Floats, labels_P: Floats) -> float:
    """Area under the ROC curve: the chance that a positive outscores a negative, ties counting one half.

    Raises:
        ValueError: If a class is missing.
    """
    positive = labels_P > 0.5
    if positive.all() or not positive.any():
        raise ValueError("AUC needs both classes")
    return auroc(scores_P, positive)


def sweep(scores_P: Floats, labels_P: Floats) -> tuple[Floats, Floats, Floats]:
    """True positives, all decided positives, and threshold at every distinct score, from the highest threshold down.

    A triple is decided positive when its score is at least the threshold.
    """
    order = np.argsort(-scores_P, kind="stable")
    ranked, hits = scores_P[order], np.cumsum(labels_P[order])
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    return hits[last], last + 1.0, ranked[last]


def precision_recall(scores_P: Floats, labels_P: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and threshold at every distinct score, from the highest threshold down."""
    hits, decided, thresholds = sweep(scores_P, labels_P)
    return hits / decided, hits / float(labels_P.sum()), thresholds


def average_precision(scores_P: Floats, labels_P: Floats) -> float:
    """Area under the precision-recall steps: sum of precision times the gain in recall."""
    precision, recall, _ = precision_recall(scores_P, labels_P)
    return float((precision * np.diff(recall, prepend=0.0)).sum())


def best_threshold(scores_P: Floats, labels_P: Floats, criterion: Criterion = "f2") -> tuple[float, float]:
    """The threshold that serves a criterion best on these scores, and the criterion's value there.

    `f1` weighs precision and recall alike, `f2` recall twice as much; `balanced_accuracy` (the mean of true-positive and
    true-negative rate) does not depend on how many negatives stand beside each positive.  The threshold lies midway to the next lower score, so that it does not
    hang on the last digit of one.
    """
    hits, decided, thresholds = sweep(scores_P, labels_P)
    positives, negatives = labels_P.sum(), (1 - labels_P).sum()
    if criterion in ("f1", "f2"):
        beta = {"f1": 1, "f2": 4}[criterion]  # beta squared
        value = (1 + beta) * hits / (decided + beta * positives)
    else:
        value = (hits / positives + 1 - (decided - hits) / negatives) / 2
    best = int(value.argmax())
    below = thresholds[best + 1] if best + 1 < len(thresholds) else thresholds[best]
    return float((thresholds[best] + below) / 2), float(value[best])


def reliability(probabilities_P: Floats, labels_P: Floats, bins: int = 10) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean probability, share of positives and count of each equally wide bin that holds anything."""
    bin_P = np.minimum((probabilities_P * bins).astype(int), bins - 1)
    counts = np.bincount(bin_P, minlength=bins)
    held = counts > 0
    mean = np.bincount(bin_P, probabilities_P, bins)[held] / counts[held]
    return mean, np.bincount(bin_P, labels_P, bins)[held] / counts[held], counts[held]


def expected_calibration_error(probabilities_P: Floats, labels_P: Floats, bins: int = 10) -> float:
    """Mean distance between probability and share of positives over the bins, weighted by their counts."""
    mean, share, counts = reliability(probabilities_P, labels_P, bins)
    return float((np.abs(mean - share) * counts).sum() / counts.sum())


def confusion(probabilities_P: Floats, labels_P: Floats, threshold: float) -> NDArray[np.int64]:
    """(2, 2) counts: row = true class, column = decided class; 0 negative, 1 positive."""
    decided = (probabilities_P >= threshold).astype(int)
    return np.bincount(2 * (labels_P > 0.5) + decided, minlength=4).reshape(2, 2)
