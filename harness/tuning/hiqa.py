"""Chooses the weights of multi-route retrieval (HiQA, Eq. 2) on questions with gold segments, by the Log-Rank Index.

Shape legend: P parent sections of the index (or its passages), Q questions, A values of alpha, B values of beta.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.gold_segments import is_relevant
from common.progress import track
from common.ranges import PositiveFloat
from common.records import Question
from harness.evaluation.hiqa.study import document_of
from harness.evaluation.log_rank import log_rank_index
from harness.evaluation.serialization import digest
from harness.evaluation.settings import Settings
from harness.retrievers.multi_route import MultiRouteRetriever, Scores, combined
from harness.retrievers.route_weights import WEIGHTS
from harness.systems.hiqa import HiQa

ALPHAS = tuple(round(0.1 * n, 1) for n in range(11))
BETAS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)


class Tuning:
    """Chooses the weights alpha and beta of a MultiRouteRetriever, which reads the file as `weights`.

    Args:
        gamma: Of the Log-Rank Index.
    """

    output = WEIGHTS.output

    def __init__(self, gamma: PositiveFloat = 1.0) -> None:
        self.gamma = gamma

    def check(self, system: HiQa) -> None:
        """Raise UserError if the system has no such retriever."""
        if not isinstance(system.retriever, MultiRouteRetriever):
            raise UserError("Tuning needs a MultiRouteRetriever, whose weights it chooses.")

    def tune(self, system: HiQa, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Choose on the questions with gold segments, and write the file.

        Raises:
            UserError: If no question has gold segments.
        """
        asked = [question for question in questions if question.gold.segments]
        if not asked:
            raise UserError("Tuning needs questions with gold segments: none of these has one.")
        assert isinstance(system.retriever, MultiRouteRetriever)  # checked above
        values_ABQ = grid(system.retriever, asked, self.gamma)
        alpha, beta = best_weights(values_ABQ)
        chosen_on = {"questions": len(asked), "sha256": digest(asked)[:12]}
        WEIGHTS.write(out, {"alpha": alpha, "beta": beta, "chosen_on": chosen_on})
        mean = 100 * values_ABQ[ALPHAS.index(alpha), BETAS.index(beta)].mean()
        return [f"alpha {alpha:g}, beta {beta:g}, chosen on {len(asked)} questions: Log-Rank Index {mean:.2f} %"]


def rank_of(scores_P: Scores, positions: NDArray[np.int64]) -> int | None:
    """The rank, from 1, of the first of some passages; ties in the order of the corpus.  None without positions."""
    if not len(positions):
        return None
    best = positions[np.lexsort((positions, -scores_P[positions]))[0]]
    equal = np.flatnonzero(scores_P == scores_P[best])
    return int((scores_P > scores_P[best]).sum() + (equal < best).sum()) + 1


def grid(retriever: MultiRouteRetriever, questions: Sequence[Question], gamma: float) -> NDArray[np.float64]:
    """Log-Rank Index of every question under all weights, (A, B, Q).

    Args:
        retriever: Its own weights and `candidates` do not count: the whole index is ranked.
        questions: With gold segments.
        gamma: Of the Log-Rank Index.
    """
    of_document: dict[str, list[int]] = {}
    passages = list(retriever.passages)
    for position, passage in enumerate(passages):
        of_document.setdefault(document_of(passage), []).append(position)
    values_ABQ = np.empty((len(ALPHAS), len(BETAS), len(questions)))
    vectors_QD = retriever.dense.encoder.encode_queries([question.text for question in questions])
    for place, question in enumerate(track(questions, len(questions), "trying weights")):
        routes = retriever.route_scores(question.text, vectors_QD[place])
        relevant = [
            np.array([n for n in of_document.get(gold.document, ()) if is_relevant(passages[n], gold)], dtype=np.int64)
            for gold in question.gold.segments
        ]
        for a, alpha in enumerate(ALPHAS):
            for b, beta in enumerate(BETAS):
                scores_P = np.maximum.reduceat(combined(*routes, alpha, beta, retriever.scaling), retriever.starts_P)
                ranks = [rank_of(scores_P, positions) for positions in relevant]
                values_ABQ[a, b, place] = log_rank_index(ranks, len(passages), gamma)
    return values_ABQ


def best_weights(values_ABQ: NDArray[np.float64]) -> tuple[float, float]:
    """alpha and beta with the greatest mean; of equal ones the smallest."""
    means_AB = values_ABQ.mean(axis=2)
    a, b = np.unravel_index(int(means_AB.argmax()), means_AB.shape)
    return ALPHAS[a], BETAS[b]
