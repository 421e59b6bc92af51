"""Whether a run has learned: rules on the figures of a validation, checked while it trains, at its end, and at export.

A figure is measured so that a model which has learned nothing stays at 0, or reaches 1; see docs/operate.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXPLAINED, LOSS_DROP, REFUSED = "explained", "loss_drop", "refused_answerable"
CURE = (
    "Try a lower or a higher --model.optimizer.learning_rate, a longer warm-up, more --trainer.max_epochs, or to start "
    "from the paper's model (docs/operate.md#a-run-that-does-not-learn)."
)
CHANCE_NATS = 3.0  # 95% of random scores seem to explain less, as half of chi-squared with two degrees of freedom
SCALES = 2.0 ** -np.arange(0, 8, 0.5)  # that make scores smaller which are too sure
SHIFTS = 60  # halvings of the interval that holds the best offset


@dataclass(frozen=True)
class LearningRule:
    """The range of a figure in a run that learns.

    Args:
        limit: End of the range; a figure that equals it is outside.
        least: Whether the range lies above `limit`; else it lies below.
        told: The message about a figure outside, for `str.format` with its value.
    """

    limit: float
    least: bool
    told: str


RULES = {
    EXPLAINED: LearningRule(0.01, True, "the scores explain {:.1%} of the labels, and a constant explains 0%"),
    LOSS_DROP: LearningRule(0.01, True, "the loss is {:.1%} below that of the starting model on the same examples"),
    REFUSED: LearningRule(0.95, False, "the refusal threshold refuses {:.0%} of the answerable questions"),
    "unchanged": LearningRule(0.95, False, "{:.0%} of the rewrites are the question"),
    "empty": LearningRule(0.95, False, "{:.0%} of the rewrites hold no query"),
}


def doubts(metrics: Mapping[str, float]) -> list[str]:
    """Why a model with these figures of validation, by name without `val/`, has not learned; empty if it has.

    A figure that is missing is not checked; one that is not a number is no sign of learning.
    """
    found = []
    for name, rule in RULES.items():
        value = metrics.get(name)
        if value is not None and not (value > rule.limit if rule.least else value < rule.limit):
            wanted = f"{'above' if rule.least else 'below'} {rule.limit:g} if a run learns"
            found.append(f"{rule.told.format(value)} (val/{name} {value:.4g}, {wanted})")
    return found


def explained(groups: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """Share of the labels' entropy that scores explain beyond chance: 0 or less for a constant, 1 for a perfect model.

        sum over groups of (H - L - CHANCE_NATS)  /  sum of H

    H is the loss of the best constant, L that of the scores, both summed over a group's labels in nats. Before, a
    constant is added to a group's scores, and they are made smaller if that is better: training on balanced examples
    leaves their level open, and an overconfident model has learned, too. They are never made larger: scores that hardly
    differ explain nothing, however they rank.

    Args:
        groups: Scores (log-odds, nats) and labels (0 or 1), both (N,). A group whose labels are all equal is left out.

    Returns:
        The share; NaN if no group is left.
    """
    gained = entropy = 0.0
    for score_N, label_N in groups:
        scores, labels = np.asarray(score_N, dtype=np.float64), np.asarray(label_N, dtype=np.float64)
        if len(labels) and 0 < labels.mean() < 1:
            constant = _loss(np.zeros_like(scores), labels)
            gained += constant - min(_loss(scale * scores, labels) for scale in SCALES) - CHANCE_NATS
            entropy += constant
    return gained / entropy if entropy else float("nan")


def _loss(score_N: NDArray[np.float64], label_N: NDArray[np.float64]) -> float:
    """Summed cross-entropy, nats, of scores at their best offset: there the mean probability is the share of labels."""
    share = label_N.mean()
    odds = np.log(share / (1 - share))
    low, high = odds - score_N.max(), odds - score_N.min()
    for _ in range(SHIFTS):
        middle = (low + high) / 2
        above = (1 + np.tanh((score_N + middle) / 2)).mean() / 2 > share  # exp would overflow
        low, high = (low, middle) if above else (middle, high)
    shifted_N = score_N + middle
    return float((np.logaddexp(0, shifted_N) - label_N * shifted_N).sum())
