"""Area under the ROC curve (AUROC), for training and evaluation.  Shape legend: N scored items."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def auroc(score_N: ArrayLike, positive_N: ArrayLike) -> float:
    """Area under the ROC curve: the probability that a positive outscores a negative, ties counting half.

    NaN when a class is missing.

    Raises:
        ValueError: If there is no item, a score is NaN or the lengths differ.
    """
    score_N, positive_N = scores_and_labels(score_N, positive_N)
    positives = int(positive_N.sum())
    negatives = len(positive_N) - positives
    if not positives or not negatives:
        return float("nan")
    _, place_N, count = np.unique(score_N, return_inverse=True, return_counts=True)
    midrank = count.cumsum() - (count - 1) / 2  # 1-based; tied scores share their mean rank
    rank_sum = midrank[place_N][positive_N].sum()
    return float((rank_sum - positives * (positives + 1) / 2) / (positives * negatives))


def scores_and_labels(score_N: ArrayLike, label_N: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores and labels as (N,) arrays; raises as `check_scores`."""
    scores, labels = np.asarray(score_N, dtype=np.float64), np.asarray(label_N, dtype=bool)
    check_scores(scores, labels)
    return scores, labels


def check_scores(scores: NDArray, labels: NDArray) -> None:
    """Raises:
    ValueError: If there is no score, one is NaN, or the lengths differ.
    """
    if scores.ndim != 1 or scores.shape != labels.shape or not len(scores):
        raise ValueError(f"as many scores as labels are needed, at least one; got {scores.shape} and {labels.shape}")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN")
