"""The temperature of retriever scores as a distribution over contexts (RE-RAG Eq. 1; `papers.md` A).

P_R(c_j | q) = softmax(S_j / T): scores of a retriever that was not trained with the generator, cosines above all, are far too
flat at T = 1.  T maximizes the likelihood, on training questions, that a context drawn from P_R holds an answer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError

_DECADES = 4  # on either side of the scores' own spread
_GRID = 161


def fit_temperature(scores: Sequence[NDArray[np.float64]], holds: Sequence[NDArray[np.bool_]]) -> float:
    """Maximum-likelihood temperature, to about one part in a thousand.

    Args:
        scores: Retriever scores of each question's contexts.
        holds: Which of them hold an answer; questions in which all or none do say nothing.

    Raises:
        UserError: If no question says anything.
    """
    telling = [
        (score - score.max(), held) for score, held in zip(scores, holds, strict=True) if held.any() and not held.all()
    ]
    if not telling:
        raise UserError(
            "temperature_questions: in no question do some contexts hold an answer and others not, so no temperature can be "
            "fitted: name a file of training questions with answers, or leave it out for temperature 1."
        )
    spread = float(np.mean([score.std() for score, _ in telling])) or 1.0
    powers = np.linspace(-_DECADES, _DECADES, _GRID)
    for _ in range(3):  # a finer grid around the best point each time: the likelihood need not have one peak only
        losses = [_loss(telling, spread * 10.0**power) for power in powers]
        best = int(np.argmin(losses))
        found = float(powers[best])
        powers = np.linspace(powers[max(best - 1, 0)], powers[min(best + 1, len(powers) - 1)], 21)
    return spread * 10.0**found


def _loss(telling: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]], temperature: float) -> float:
    """Mean of -log of the P_R mass on contexts that hold an answer, nats."""
    total = 0.0
    for score, held in telling:
        scaled = score / temperature
        total += np.logaddexp.reduce(scaled) - np.logaddexp.reduce(scaled[held])
    return total / len(telling)
