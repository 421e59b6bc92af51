"""Relevance of contexts in RE-RAG's losses.

The estimator's, the retriever's (Eq. 1-2: the baseline of Table 7), or uniform.
"""

from collections.abc import Sequence

import numpy as np

from datamodules.examples.context_sets import ContextSet
from models.rerag.model import Relevance
from models.rerag.temperature import fit_temperature
from trainers.rerag_options import refuse


def chosen_relevance(
    relevance: Relevance | None, estimator: str | None, packed: bool, retriever_temperature: float | None
) -> Relevance:
    """What weights the contexts.

    Args:
        relevance: As given; None for the estimator if there is one, else uniform.
        estimator: As given.
        packed: Whether the generator reads all contexts in one call.
        retriever_temperature: As given.

    Raises:
        UserError: If the options contradict each other.
    """
    chosen = relevance or ("uniform" if estimator is None else "estimator")
    missing = "relevance is estimator, but there is none: name one with estimator, or set relevance retriever."
    refuse(chosen == "estimator" and estimator is None, missing)
    unused = f"relevance {chosen} does not use the estimator: set estimator null, or relevance estimator."
    refuse(chosen != "estimator" and estimator is not None, unused)
    together = "this text.format reads all documents at once, so there is nothing to weight: set relevance uniform."
    refuse(chosen == "retriever" and packed, together)
    other = f"retriever_temperature is for relevance retriever, but relevance is {chosen}: omit it."
    refuse(chosen != "retriever" and retriever_temperature is not None, other)
    return chosen


def fit_retriever_temperature(sets: Sequence[ContextSet]) -> float:
    """The temperature T of P_R = softmax(S / T) with the greatest likelihood that a context drawn from P_R is relevant.

    Args:
        sets: Training questions with their contexts, all scored.

    Raises:
        UserError: If no question has both relevant and irrelevant contexts.
    """
    return fit_temperature(
        [np.array(one.scores, float) for one in sets],
        [np.array(one.labels, bool) for one in sets],
        "model.relevance retriever",
        "give a temperature as model.retriever_temperature, or other training files",
    )
