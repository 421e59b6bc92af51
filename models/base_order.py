"""The order that an estimator is given: the retriever's scores in its logit, in training as at inference.

    logit(q, c) = estimator(q, c) + weight * (score(q, c) - score of q's best candidate)

An estimator that learns from few questions so starts from the retriever's order, and learns what that lacks. A score
counts by its distance to the best one: neither the level of the scores nor the number of candidates changes it. Ours,
in none of the papers.

Shape legend: B questions, N contexts per question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from torch import Tensor

from common.errors import UserError
from common.sealed_json import check_fields
from models.calibration import Calibration
from models.serving_manifest import CURE

NORMALISATION = "score - best score of the question"  # the only one; stored, so that others can read the folder
FIELDS = {
    "source": str, "weight": float, "normalisation": [NORMALISATION], "calibration": {"scale": float, "offset": float},
}  # fmt: skip


def below_best(scores_BN: Tensor, real_BN: Tensor) -> Tensor:
    """The distance of each score to the question's best, at most 0; 0 for padding."""
    best_B1 = scores_BN.masked_fill(~real_BN, -inf).amax(dim=1, keepdim=True)
    return (scores_BN - best_B1).masked_fill(~real_BN, 0.0)


@dataclass(frozen=True, slots=True)
class BaseOrder:
    """The retriever's part of an estimator's logit."""

    source: str  # whose scores: `scored_by` of the training files; empty where they do not say
    weight: float  # nats per unit of score
    calibration: Calibration = field(default_factory=Calibration)  # of the sum; the model has that of its part alone

    def __call__(self, logits: Sequence[float], retrieved: Sequence[float]) -> list[float]:
        """The sum for each candidate of a question, nats.

        Args:
            logits: Of the estimator.
            retrieved: The retriever's scores of the same candidates.
        """
        best = max(retrieved, default=0.0)
        return [logit + self.weight * (own - best) for logit, own in zip(logits, retrieved, strict=True)]

    def check(self, source: str | None, whose: str) -> None:
        """Raise UserError if scores are missing (source None), or are another retriever's.

        Args:
            source: Who gave them.
            whose: Of what, for the message.
        """
        own = self.source or "the training files"
        if source is None:
            raise UserError(f"{whose} has no score of {own} for every passage, and this estimator adds it: give them.")
        if source != self.source:
            raise UserError(
                f"{whose} has scores of {source or 'a retriever that its file does not name'}, but this estimator was "
                f"trained with those of {own}: give these, or train it with others."
            )

    @property
    def content(self) -> dict[str, Any]:
        """As serving.json has it."""
        return {**asdict(self), "normalisation": NORMALISATION}


def base_order_of(serving: Path, manifest: Mapping[str, Any]) -> BaseOrder | None:
    """The base order of a serving folder; None without one.

    Raises:
        ArtifactError: If its fields are missing or wrong.
    """
    if (content := manifest.get("base_order")) is None:
        return None
    check_fields(f"{serving}: base_order", content, FIELDS, CURE)
    return BaseOrder(content["source"], float(content["weight"]), Calibration(**content["calibration"]))
