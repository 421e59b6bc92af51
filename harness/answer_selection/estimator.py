"""Selection by relevance: the source of the context that RE-RAG's estimator finds most probably relevant.

The default of MSRAG, whose paper chooses by the gold answer.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from common.context_sources import NONE, SelectedSource
from common.ranges import Precision
from common.records import Answer, Question
from harness.answer_selection.answer_texts import NO_ANSWER, answered, noted_probability
from harness.retrievers.rerank import relevance
from harness.runtime.loading import load

if TYPE_CHECKING:
    from models.rerag.model import ReRagModel

ONLY_ONE = "no other source has an answer"
UNKNOWN = "P(relevant) of no context is known: the first source with an answer"


class ContextProbability:
    """The calibrated probability that the best passage of a source's context is relevant.

    Args:
        serving: Folder with an estimator that RE-RAG's training exported; None: the probabilities that the reader has
            noted (`harness.readers.t5.ContextReader`).
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.
    """

    def __init__(self, serving: Path | None, device: str = "auto", precision: Precision = "auto") -> None:
        self.serving, self.device, self.precision = serving, device, precision

    def load(self) -> None:
        """Load the estimator."""
        _ = self.model

    @cached_property
    def model(self) -> "ReRagModel | None":
        """With the estimator and its calibration; None where the reader's probabilities are taken."""
        if self.serving is None:
            return None
        from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel

        return ReRagModel.load(Path(self.serving), self.device, (ESTIMATOR,), self.precision, (GENERATOR,))

    def __call__(
        self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]
    ) -> list[dict[str, float | None]]:
        """By source: the probability; None for a source without a context, or where the reader has noted none."""
        if self.model is None:
            return [{source: noted_probability(answer) for source, answer in each.items()} for each in answers]
        assert self.model.estimator is not None  # required where it is loaded
        flat = [(q.text, each[source]) for q, each in zip(questions, answers, strict=True) for source in each]
        passages = [[hit.passage for hit in answer.evidence] for _, answer in flat]
        scores = iter(relevance(self.model.estimator, [text for text, _ in flat], passages))
        calibrate = self.model.calibration
        return [{source: max(map(calibrate, next(scores)), default=None) for source in each} for each in answers]


class EstimatedRelevance:
    """Chooses the source whose best passage has the greatest calibrated P(relevant).

    A source whose P(relevant) is not known comes after those whose is, and `none`, which has no context, last. Ties by
    the order of the sources. Empty answers take no part, and refusals
    (`harness.answer_selection.answer_texts.is_refusal`) only where all answers are refusals.

    Args:
        serving: Folder with an estimator that RE-RAG's training exported, e.g. checkpoints/rerag-nq/serving; None: the
            probabilities that the reader has noted, as harness.readers.t5.ContextReader does.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator.
    """

    name = "most relevant context"
    uses_gold = False

    def __init__(self, serving: Path | None = None, device: str = "auto", precision: Precision = "auto") -> None:
        self.probability = ContextProbability(serving, device, precision)

    def load(self) -> None:
        """Load the estimator."""
        load(self.probability)

    @property
    def facts(self) -> list[str]:
        """Where the probabilities come from, for reports."""
        return [f"selection: the most relevant context, by {self.probability.serving or 'what the reader notes'}"]

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question; scores are the probabilities that are known."""
        known = self.probability(questions, answers)
        return [most_relevant(each, own) for each, own in zip(answers, known, strict=True)]


def most_relevant(answers: Mapping[str, Answer], known: Mapping[str, float | None]) -> SelectedSource:
    """The source with an answer whose context is the most relevant; the first one where P(relevant) is not known."""
    sources = answered(answers)
    if len(sources) < 2:
        return SelectedSource(sources[0], ONLY_ONE) if sources else SelectedSource(next(iter(answers)), NO_ANSWER)
    scores = {source: p for source in sources if source != NONE and (p := known[source]) is not None}
    best = max(sources, key=lambda source: scores.get(source, -2.0 if source == NONE else -1.0))
    if not scores:
        return SelectedSource(best, UNKNOWN)
    return SelectedSource(best, f"its context is the most relevant: P(relevant) {scores[best]:.3f}", scores)
