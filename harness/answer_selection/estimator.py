"""Selection by relevance: the source whose context the relevance estimator finds most probably relevant.

It is RE-RAG's estimator in MSRAG.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from common.context_sources import NONE, SelectedSource
from common.errors import UserError
from common.ranges import Precision, Share
from common.records import Answer, Question
from harness.answer_selection.agreement import alone
from harness.answer_selection.answer_texts import answered, noted_probability
from harness.retrievers.rerank import relevance
from harness.runtime.loading import load

if TYPE_CHECKING:
    from models.rerag.model import ReRagModel


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

    `none` has no context: it is chosen if no other source reaches the threshold. Ties by the order of the sources;
    empty answers and refusals take no part, as in `harness.answer_selection.agreement.Agreement`.

    Args:
        serving: Folder with an estimator that RE-RAG's training exported, e.g. checkpoints/rerag-nq/serving; None: the
            probabilities that the reader has noted, as harness.readers.t5.ContextReader does.
        threshold: Least P(relevant) of a context.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator.
    """

    name = "estimator"
    uses_gold = False

    def __init__(
        self,
        serving: Path | None = None,
        threshold: Share = 0.5,
        device: str = "auto",
        precision: Precision = "auto",
    ) -> None:
        self.threshold, self.serving = threshold, serving
        self.probability = ContextProbability(serving, device, precision)

    def load(self) -> None:
        """Load the estimator."""
        load(self.probability)

    @property
    def facts(self) -> list[str]:
        """Where the probabilities come from, for reports."""
        return [f"selection: estimator of {self.serving or 'the reader'}, threshold {self.threshold:g}"]

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """The chosen source of every question; scores are probabilities, the threshold for `none`.

        Raises:
            UserError: If no probability is known of a source with passages.
        """
        return [
            self._chosen(each, known) for each, known in zip(answers, self.probability(questions, answers), strict=True)
        ]

    def _chosen(self, answers: Mapping[str, Answer], known: Mapping[str, float | None]) -> SelectedSource:
        sources = answered(answers)
        for source in sources:
            if known[source] is None and answers[source].evidence:
                raise UserError(
                    "the selector needs P(relevant) of every context, and the reader notes none: name an estimator by "
                    "--system.init_args.selector.init_args.serving, or read with harness.readers.t5.ContextReader."
                )
        if len(sources) < 2:
            return alone(sources, answers)
        scores = {source: self.threshold if source == NONE else known[source] or 0.0 for source in sources}
        best = max(scores, key=lambda source: scores[source])
        if best == NONE:
            return SelectedSource(best, f"no context reaches P(relevant) {self.threshold:.3f}", scores)
        return SelectedSource(best, f"its context is the most relevant: P(relevant) {scores[best]:.3f}", scores)
