"""Metrics of a binary classifier as pure functions of probabilities and labels, NumPy arrays of shape (P,): P examples.

Average precision, precision-recall curve, calibration error and confusion matrix are torchmetrics'. It applies a
sigmoid to scores outside [0, 1], so these four take probabilities.
"""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.plugins import DoublePrecision
from torchmetrics.functional import classification

Floats = NDArray[np.floating[Any]]
Criterion = Literal["f1", "f2", "balanced_accuracy"]


def best_threshold(scores_P: Floats, labels_P: Floats, criterion: Criterion = "f2") -> tuple[float, float]:
    """The threshold that maximizes a criterion on these scores, and the maximum.

    A score of at least the threshold counts as positive. `f1` weighs precision and recall equally, `f2` weighs recall
    twice as much; `balanced_accuracy` (the mean of true-positive and true-negative rate) does not depend on the share
    of positives. The threshold is the midpoint between the best score and the next lower one, so that it does not
    depend on a score's last digit.
    """
    order = np.argsort(-scores_P, kind="stable")
    ranked, hits = scores_P[order], np.cumsum(labels_P[order])
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # of every distinct score, from the highest down
    hits, decided, thresholds = hits[last], last + 1.0, ranked[last]
    positives, negatives = labels_P.sum(), (1 - labels_P).sum()
    if criterion in ("f1", "f2"):
        beta_squared = {"f1": 1, "f2": 4}[criterion]
        value = (1 + beta_squared) * hits / (decided + beta_squared * positives)
    else:
        value = (hits / positives + 1 - (decided - hits) / negatives) / 2
    best = int(value.argmax())
    below = thresholds[best + 1] if best + 1 < len(thresholds) else thresholds[best]
    return float((thresholds[best] + below) / 2), float(value[best])


def _tensors(probabilities_P: Floats, labels_P: Floats) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(np.asarray(probabilities_P, dtype=np.float64)), torch.from_numpy(labels_P > 0.5).long()


def precision_recall(probabilities_P: Floats, labels_P: Floats) -> tuple[Floats, Floats]:
    """Precision and recall at every distinct probability p, from the lowest up; then the point (1, 0).

    Examples of at least p count as positive.
    """
    with DoublePrecision().forward_context():  # torchmetrics divides counts in torch's default dtype
        precision, recall, _ = classification.binary_precision_recall_curve(*_tensors(probabilities_P, labels_P))
    return precision.numpy(), recall.numpy()


def average_precision(probabilities_P: Floats, labels_P: Floats) -> float:
    """Area under the steps of the precision-recall curve: the sum of precision times the gain in recall."""
    with DoublePrecision().forward_context():
        return float(classification.binary_average_precision(*_tensors(probabilities_P, labels_P)))


def reliability(probabilities_P: Floats, labels_P: Floats, bins: int = 10) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean probability, share of positives and count of each bin that is not empty.

    Equally wide bins [a, b), the last one [a, 1].
    """
    counts, sums, hits = (
        np.histogram(probabilities_P, bins, (0, 1), weights=weights)[0] for weights in (None, probabilities_P, labels_P)
    )
    held = counts > 0
    return sums[held] / counts[held], hits[held] / counts[held], counts[held]


def expected_calibration_error(probabilities_P: Floats, labels_P: Floats, bins: int = 10) -> float:
    """Mean distance between probability and share of positives over the bins of `reliability`, weighted by count.

    torchmetrics counts probabilities of exactly 1 as one bin more; the next smaller number puts them into the last bin.
    """
    below_one_P = np.minimum(probabilities_P, np.nextafter(1.0, 0.0))
    return float(classification.binary_calibration_error(*_tensors(below_one_P, labels_P), n_bins=bins))


def confusion(probabilities_P: Floats, labels_P: Floats, threshold: float) -> NDArray[np.int64]:
    """(2, 2) counts: row = true class, column = decided class; 0 negative, 1 positive.

    A probability of at least the threshold is decided positive. torchmetrics would ask for more than the threshold, so
    it is given the decisions.
    """
    decided_P, true_P = (torch.from_numpy(each_P).long() for each_P in (probabilities_P >= threshold, labels_P > 0.5))
    return classification.binary_confusion_matrix(decided_P, true_P).numpy()
