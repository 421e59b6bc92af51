"""The interfaces of the harness: a retriever finds passages, a reader writes an answer, a strategy is a whole system.
All are batched.  Standard library only, so that a command line can show its help without loading a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from common.records import Answer, Passage, Question, Ranked

if TYPE_CHECKING:
    from models.rerag.calibration import Calibration
    from models.rerag.estimator import RelevanceEstimator
    from models.rerag.generator import Generator


@runtime_checkable
class Retriever(Protocol):
    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first; fewer where the corpus or the matches are fewer.

        An empty query finds nothing.  `k` must be at least 1.
        """


@runtime_checkable
class Reader(Protocol):
    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question from its evidence (best first)."""


@runtime_checkable
class Strategy(Protocol):
    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question, in their order."""


@runtime_checkable
class PairScorer(Protocol):
    """DR-RAG's C(q, d1, d2), as `models.drrag.triple_classifier.TripleClassifier` is."""

    threshold: float  # P(positive) from which a pair counts as positive, chosen on validation

    def probabilities(self, triples: Sequence[tuple[str, Passage, Passage]]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order; not symmetric in d1 and d2."""


@runtime_checkable
class RelevanceModel(Protocol):
    """RE-RAG's learned parts, at least one of the two, as `models.rerag.model.ReRagModel` is."""

    estimator: "RelevanceEstimator | None"
    generator: "Generator | None"
    calibration: "Calibration"
    refusal_threshold: float | None  # calibrated P(relevant) that some context must reach
    max_answer_tokens: int
    relevance_temperature: float  # divides relevance logits where `thorough` weighs by them
