"""The file of CFS options chosen on validation questions, one set per budget k.

The options are k1, depth, threshold, question weight and orders.

`infer.py tune` writes it, and the system reads it. It belongs to the classifier whose pair
scores it was chosen with.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, UserError
from common.fitted_files import CURE, FittedFile
from harness.selection.options import SelectionOptions


@dataclass(frozen=True, slots=True)
class Tuned:
    """The chosen options for one k: see `SelectionOptions`."""

    k1: int
    depth: int
    threshold: float
    question_weight: int
    symmetric: bool

    def cfs(self, k: int) -> SelectionOptions:
        """CFS (Eq. 4, unfilled) with these options."""
        return SelectionOptions("cfs", k, **asdict(self))


def read_selection(path: Path, classifier: str | None) -> dict[int, Tuned]:
    """The options of every k.

    Args:
        path: The file.
        classifier: sha256 of the manifest of the classifier that is to use them; None: of no serving folder.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If it is corrupt, was edited, is of another version, or belongs to another classifier.
    """
    of, by_k = SELECTION.read(path)
    if of != classifier:
        own, theirs = (each[:12] if each else "of no serving folder" for each in (classifier, of))
        raise ArtifactError(
            f"{path} was chosen for the classifier {theirs}, not for this one ({own}): their scores differ. {CURE}"
        )
    return by_k


def completed(options: SelectionOptions, by_k: Mapping[int, Tuned], path: Path) -> SelectionOptions:
    """The options, with the file's choice for their k where an option is None.

    CFS takes all of them; QDC and CIS, which choose from the same candidates, all but threshold and orders. Other
    methods stay as they are.

    Raises:
        UserError: If the file has nothing for this k.
    """
    if options.method not in ("qdc", "cis", "cfs"):
        return options
    if options.k not in by_k:
        known = ", ".join(map(str, sorted(by_k)))
        raise UserError(
            f"{path} has options for k = {known}, none for k = {options.k}. Choose one of these, or choose the options "
            f"again: infer.py tune with --tuning.ks '[{options.k}]'."
        )
    chosen = asdict(by_k[options.k])
    if options.method != "cfs":
        del chosen["threshold"], chosen["symmetric"]
    open_ones = {name for name, value in asdict(options).items() if value is None}
    return replace(options, **{name: value for name, value in chosen.items() if name in open_ones})


def _chosen(content: dict[str, Any]) -> tuple[str | None, dict[int, Tuned]]:
    """The classifier and the options of a file."""
    by_k = {int(k): Tuned(**chosen) for k, chosen in content["selection"].items()}
    for k, tuned in by_k.items():
        tuned.cfs(k)  # refuses what is out of range
    return content["classifier"], by_k


# classifier: sha256 of the manifest of its serving folder, None if it came from none; chosen_on: for the reader
SELECTION = FittedFile("a file of selection options", _chosen)
