"""Temperature fitting for retriever scores as weights of contexts (RE-RAG Eq. 1).

P_R(c_j | q) = softmax(S_j / T). At T = 1, scores of a retriever not trained with the generator (cosines above all) give
a nearly uniform P_R. T maximizes the likelihood, on training questions, that a context drawn from P_R has an answer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError

_DECADES = 4  # searched on either side of the scores' standard deviation
_GRID = 161


def fit_temperature(
    scores: Sequence[NDArray[np.float64]],
    labels: Sequence[NDArray[np.bool_]],
    option: str = "questions",
    cure: str = "choose another file of training questions",
) -> float:
    """Maximum-likelihood temperature, to about one part in a thousand.

    Args:
        scores: Retriever scores of each question's contexts.
        labels: Has-answer labels of the contexts; questions where all are equal do not depend on T and are ignored.
        option: What named the questions, for the error message.
        cure: What to do about it, for the error message.

    Raises:
        UserError: If no question has both labels.
    """
    pairs = zip(scores, labels, strict=True)
    informative = [(score - score.max(), label) for score, label in pairs if label.any() and not label.all()]
    if not informative:
        raise UserError(
            f"{option}: no question has both contexts with and contexts without an answer, so no temperature can be "
            f"fitted: {cure}."
        )
    spread = float(np.mean([score.std() for score, _ in informative])) or 1.0
    powers = np.linspace(-_DECADES, _DECADES, _GRID)
    for _ in range(3):  # successively finer grids around the best point: the likelihood may have several maxima
        losses = [_loss(informative, spread * 10.0**power) for power in powers]
        best = int(np.argmin(losses))
        found = float(powers[best])
        powers = np.linspace(powers[max(best - 1, 0)], powers[min(best + 1, len(powers) - 1)], 21)
    return spread * 10.0**found


def _loss(informative: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]], temperature: float) -> float:
    """Mean negative log of P_R's mass on contexts with an answer, nats."""
    total = 0.0
    for score, label in informative:
        scaled = score / temperature
        total += np.logaddexp.reduce(scaled) - np.logaddexp.reduce(scaled[label])
    return total / len(informative)
