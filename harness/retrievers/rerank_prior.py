"""The retriever's order as a prior of reranking: a passage that was found late needs a higher relevance logit.

    score(q, c) = logit(q, c) - weight * log(rank of c among q's candidates)

This is ours, in none of the papers. An estimator that was trained on other questions, or on fewer candidates, than it
ranks then loses little to the order in which it was given them, and further candidates at the end of the list do little
harm. `infer.py tune` fits the weight, and the calibration of the sum, on validation questions at the number of
candidates that is served.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf, log
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from common.errors import ArtifactError
from common.fitted_files import CURE, FittedFile
from models.serving_manifest import manifest_sha256

if TYPE_CHECKING:
    from models.calibration import Calibration

_FIELDS = {
    "prior_weight": float,
    "calibration": {"scale": float, "offset": float},
    "estimator": (str, NoneType),
    "fitted_on": dict,
}


@dataclass(frozen=True, slots=True)
class RerankPrior:
    """The weight of the retriever's ranks, and the calibration of the sum."""

    weight: float  # nats that a passage loses when its rank is e times as great
    calibration: "Calibration"  # P(relevant) of the sum
    estimator: str | None = None  # `models.serving_manifest.manifest_sha256`; None of one without a manifest
    fitted_on: dict[str, Any] = field(default_factory=dict)  # questions and candidates; JSON types

    def __call__(self, logits: Sequence[float], retrieved: Sequence[float]) -> list[float]:
        """The sum for each candidate of a question, nats.

        Args:
            logits: Of the estimator.
            retrieved: The retriever's scores of the same candidates. Equal scores have the rank of the first of them:
                where all are equal, as where none is known, nothing is added.
        """
        order, rank_of = sorted(retrieved, reverse=True), dict[float, int]()
        for rank, score in enumerate(order, 1):
            rank_of.setdefault(score, rank)
        return [logit - self.weight * log(rank_of[own]) for logit, own in zip(logits, retrieved, strict=True)]

    @property
    def content(self) -> dict[str, Any]:
        """Of its file."""
        own = {"prior_weight": self.weight, "calibration": asdict(self.calibration), "estimator": self.estimator}
        return {**own, "fitted_on": self.fitted_on}

    @staticmethod
    def of(path: Path | None, serving: Path | None) -> "RerankPrior | None":
        """The prior of a file for an estimator; None without a file.

        Args:
            path: The file.
            serving: Folder of the estimator; None: a loaded one, which is not compared.

        Raises:
            MissingInputError: If there is no such file.
            ArtifactError: If it is corrupt, another file, or was fitted for another estimator.
        """
        if path is None:
            return None
        prior = PRIOR.read(Path(path))
        if serving is not None and prior.estimator != manifest_sha256(Path(serving)):
            raise ArtifactError(f"{path} was fitted for another estimator than {serving}. {CURE}")
        return prior


def _prior(content: dict[str, Any]) -> RerankPrior:
    from models.calibration import Calibration  # loads torch

    if not 0 <= content["prior_weight"] < inf:
        raise ValueError(f"prior_weight {content['prior_weight']} is out of range")
    calibration = Calibration(**content["calibration"])
    return RerankPrior(float(content["prior_weight"]), calibration, content["estimator"], content["fitted_on"])


PRIOR = FittedFile("a file of a rerank prior", _prior, _FIELDS)
