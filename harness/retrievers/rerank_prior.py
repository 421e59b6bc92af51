"""The retriever's order as a prior of reranking: what the first stage knows is added to the relevance logit.

    score(q, c) = logit(q, c) - weight * log(rank of c among q's candidates)

So the log-odds of a passage fall with the logarithm of its rank. An estimator that was trained on other questions, or
on fewer candidates, than it ranks then loses little to the order in which it was given them, and further candidates at
the end of the list do little harm. `infer.py tune` fits the weight, and the calibration of the sum, on validation
questions at the number of candidates that is served.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from common.sealed_json import check_fields, unsealed, write_sealed

if TYPE_CHECKING:
    from models.rerag.calibration import Calibration

_CURE = "Fit it again: infer.py tune on validation questions."
_FIELDS = {"prior_weight": float, "calibration": {"scale": float, "offset": float}, "fitted_on": dict}


@dataclass(frozen=True, slots=True)
class RerankPrior:
    """The weight of the retriever's ranks, and the calibration of the sum."""

    weight: float  # nats of a rank e times as high
    calibration: "Calibration"  # P(relevant) of the sum
    fitted_on: dict[str, Any] = field(default_factory=dict)  # questions, candidates and estimator; JSON types

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

    def save(self, path: Path) -> None:
        """Write the file.

        Raises:
            ArtifactError: If writing fails.
        """
        calibration = asdict(self.calibration)
        write_sealed(path, {"prior_weight": self.weight, "calibration": calibration, "fitted_on": self.fitted_on})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            MissingInputError: If there is no such file.
            ArtifactError: If it is corrupt or another file.
        """
        from models.rerag.calibration import Calibration  # loads torch

        if not path.is_file():
            raise MissingInputError(f"{path}: no file of a rerank prior. {_CURE}")
        value = unsealed(path, read_json(path, _CURE), _CURE)
        check_fields(str(path), value, _FIELDS, _CURE)
        if not 0 <= value["prior_weight"] < inf:
            raise ArtifactError(f"{path}: prior_weight {value['prior_weight']} is out of range. {_CURE}")
        return cls(float(value["prior_weight"]), Calibration(**value["calibration"]), value["fitted_on"])


def is_prior_file(path: Path) -> bool:
    """Whether `RerankPrior.save` wrote a file."""
    try:
        RerankPrior.load(path)
    except UserError:
        return False
    return True
