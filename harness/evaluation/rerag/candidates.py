"""One question's candidates, from which all weightings, subsets and numbers of contexts in RE-RAG's tables are derived.

Shape legend: C candidates of a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.records import Passage, Question, Ranked
from harness.readers.t5 import marginalized
from harness.systems.rerag import RankedCandidates, Ranker, Source, best_first
from models.rerag.marginal_reader import AnswerMatrix, AnyMarginal, MarginalReading


@dataclass(slots=True)
class CandidateSet:
    """One question's candidates, in the retriever's order."""

    question: Question
    passages: tuple[Passage, ...]
    retriever_C: NDArray[np.float64]  # retriever scores divided by the temperature
    relevance_C: NDArray[np.float64]  # the estimator's logits
    has_answer_C: NDArray[np.bool_]  # DPR's has-answer label
    column_of: dict[int, int] = field(default_factory=dict)  # candidate -> its column in the matrix
    matrix: AnswerMatrix | None = None
    relevance_temperature: float = 1.0  # divides the logits when `thorough` uses them as weights
    source: Source = "retriever"  # of the retriever scores
    retriever_temperature: float = 1.0  # that `retriever_C` was divided by

    @classmethod
    def of(cls, item: RankedCandidates, temperature: float, relevance_temperature: float) -> Self:
        """What a system that reads the first contexts of either ranker makes of a question."""
        passages = tuple(hit.passage for hit in item.found)
        return cls(
            item.question,
            passages,
            np.array([hit.score for hit in item.found], float) / temperature,
            np.array(item.logits, float),
            has_answer_labels(item.question, passages),
            {place: column for column, place in enumerate(item.places)},
            item.read.matrix if item.read else None,
            relevance_temperature,
            item.source,
            temperature,
        )

    def order(self, by: Ranker) -> list[int]:
        """Candidates, best first; the retriever's order breaks ties."""
        return list(range(len(self.passages))) if by == "retriever" else best_first(self.relevance_C.tolist())

    def weights(self, by: Ranker) -> NDArray[np.float64]:
        """Logits of the prior over contexts, before their temperature."""
        return self.retriever_C if by == "retriever" else self.relevance_C

    def read(self, contexts: Ranker, weights: Ranker, count: int, marginal: AnyMarginal) -> MarginalReading:
        """The answer from the first `count` contexts of the ranker `contexts`, weighted by the ranker `weights`.

        Raises:
            KeyError: If a context was not read.
        """
        chosen = self.order(contexts)[:count]
        columns = [self.column_of[candidate] for candidate in chosen]
        matrix = self.matrix.subset(columns) if self.matrix else AnswerMatrix.of((), None)
        if marginal == "fast":
            matrix = replace(matrix, answer_logp_AN=None)
        hits = [Ranked(self.passages[place], float(self.weights(weights)[place])) for place in chosen]
        fitted = weights == "estimator" and marginal == "thorough"
        return marginalized(matrix, hits, self.relevance_temperature if fitted else 1.0)


def has_answer_labels(question: Question, passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """DPR's has-answer label of every passage: whether it contains one of the question's answers."""
    return np.array([has_answer(passage.text, question.answers) for passage in passages], dtype=bool)
