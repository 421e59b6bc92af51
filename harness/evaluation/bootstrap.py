"""Bootstrap over questions (Efron 1979).

Percentile intervals of mean differences between systems, and of other statistics.

Shape legend: N questions, R rows compared, B resamples.
"""

import numpy as np
from numpy.typing import NDArray

_CELLS_AT_ONCE = 4_000_000  # resampled cells held at a time: 32 MB of int64


def paired_intervals(
    differences_RN: NDArray[np.float64], resamples: int = 10_000, seed: int = 0
) -> NDArray[np.float64]:
    """95% percentile intervals of mean differences, with the same resamples for all rows.

    Args:
        differences_RN: Row's score minus baseline's score, per question.
        resamples: How often N questions are drawn with replacement.
        seed: Of the random draws.

    Returns:
        Lower and upper ends (R, 2), in the unit of the differences.

    Raises:
        ValueError: If there is no question or no resample.
    """
    return np.quantile(_resampled_means(differences_RN, resamples, seed), [0.025, 0.975], axis=0).T


def _resampled_means(values_RN: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """(B, R) means of the rows over questions drawn with replacement, the same ones for all rows."""
    rows, questions = values_RN.shape
    if questions < 1 or resamples < 1:
        raise ValueError(f"{questions} questions, {resamples} resamples: nothing to resample")
    random = np.random.default_rng(seed)
    means_BR = np.empty((resamples, rows))
    step = max(1, _CELLS_AT_ONCE // questions)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn_BN = random.integers(0, questions, size=(size, questions))
        # how often each question was drawn; one matrix product gives the means of all rows
        cells = drawn_BN + np.arange(size)[:, None] * questions
        counts_BN = np.bincount(cells.ravel(), minlength=size * questions).reshape(size, questions)
        means_BR[start : start + size] = counts_BN @ values_RN.T / questions
    return means_BR
