"""False negatives among mined passages: those that nobody has labelled, and that a cross-encoder finds relevant."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, Precision, Share
from common.records import Passage, Question
from harness.retrievers.rerank import relevance, shortened

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator


@dataclass(frozen=True)  # no slots: the estimator is kept
class FalseNegatives:
    """Which of the passages that are found are no negatives, since they may be relevant.

    Named as in sentence-transformers' `mine_hard_negatives`. Scores are P(relevant) = sigmoid(log-odds), 0 to 1, and
    stand in the mined file. The margins are to the question's gold passage with the highest score; where no gold
    passage's text is known they leave nothing out.

    Args:
        scorer: Folder or hub id of a cross-encoder, or serving folder of a trained estimator; needed by all options but
            `range_min`.
        range_min: Number of each search's first passages, without gold ones, that are no negatives.
        max_score: A passage with a higher score is none.
        absolute_margin: Nor one whose score is above gold's minus this.
        relative_margin: Nor one whose score is above gold's times 1 minus this; 0.05 in NV-Retriever
            (https://arxiv.org/abs/2407.15831).
        device: Of the scorer: auto, cpu or cuda.
        precision: Of the scorer: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If an option that needs a scorer has none, or a scorer has nothing to do.
    """

    scorer: Path | None = None
    range_min: NonNegativeInt = 0
    max_score: Share | None = None
    absolute_margin: NonNegativeFloat | None = None
    relative_margin: Share | None = None
    device: str = "auto"
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        limits = {"max_score", "absolute_margin", "relative_margin"}
        given = sorted(name for name in limits if getattr(self, name) is not None)
        if given and self.scorer is None:
            raise UserError(
                f"false_negatives.{given[0]} needs scores: name a cross-encoder with false_negatives.scorer."
            )
        if self.scorer is not None and not given:
            raise UserError(f"false_negatives.scorer does nothing alone: give one of {', '.join(sorted(limits))}.")

    @cached_property
    def _estimator(self) -> "RelevanceEstimator":
        from models.cross_encoder import load_scorer

        assert self.scorer is not None  # or nothing is scored
        return load_scorer(self.scorer, self.device, self.precision)

    def load(self) -> None:
        """Load the scorer, if there is one.

        Raises:
            MissingInputError: If there is no such folder or model.
            ArtifactError: If a serving folder is corrupt, or has no estimator.
        """
        _ = self.scorer and self._estimator

    def scores(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[dict[str, float]]:
        """P(relevant) of each question's passages, by id; empty without a scorer."""
        if self.scorer is None:
            return [{} for _ in questions]
        import torch

        texts = [shortened(self._estimator, question.text) for question in questions]
        log_odds = relevance(self._estimator, texts, passages)
        return [
            dict(zip((passage.id for passage in own), torch.tensor(row).sigmoid().tolist(), strict=True))
            for own, row in zip(passages, log_odds, strict=True)
        ]

    def highest(self, gold_scores: Sequence[float]) -> float:
        """The highest score of a negative.

        Args:
            gold_scores: Of the question's gold passages; may be empty.
        """
        gold = max(gold_scores, default=inf)
        limits = [
            inf if self.max_score is None else self.max_score,
            inf if self.absolute_margin is None else gold - self.absolute_margin,
            inf if self.relative_margin is None else gold * (1 - self.relative_margin),
        ]
        return min(limits)
