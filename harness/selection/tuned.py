"""The file of CFS options chosen on validation questions, one set per budget k.

The options are k1, depth, threshold, question weight and orders.

`infer.py tune` writes it, and the system reads it. It belongs to the classifier whose pair
scores it was chosen with.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import read_json
from common.sealed_json import unsealed, write_sealed
from harness.selection.options import SelectionOptions

_CURE = "Choose the options again: infer.py tune on validation questions."


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


def write_selection(
    path: Path, by_k: Mapping[int, Tuned], classifier: str | None, chosen_on: Mapping[str, object]
) -> None:
    """Write the options of every k, sealed.

    Args:
        path: The file; replaced if it exists.
        by_k: Options by k.
        classifier: sha256 of the manifest of the classifier's serving folder; None if it came from none.
        chosen_on: Questions, indexes and limits, for the reader of the file.

    Raises:
        ArtifactError: If writing fails.
    """
    selection = {str(k): asdict(tuned) for k, tuned in by_k.items()}
    write_sealed(path, {"selection": selection, "classifier": classifier, "chosen_on": chosen_on})


def is_selection_file(path: Path) -> bool:
    """Whether `write_selection` wrote a file, for whichever classifier."""
    try:
        _read(path)
    except UserError:
        return False
    return True


def read_selection(path: Path, classifier: str | None) -> dict[int, Tuned]:
    """The options of every k.

    Args:
        path: The file.
        classifier: As in `write_selection`: of the classifier that is to use them.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If it is corrupt, was edited, is of another version, or belongs to another classifier.
    """
    of, by_k = _read(path)
    if of != classifier:
        raise ArtifactError(
            f"{path} was chosen for the classifier {_short(of)}, not for this one ({_short(classifier)}): their scores "
            f"differ. {_CURE}"
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
    return replace(options, **{name: value for name, value in chosen.items() if getattr(options, name) is None})


def _read(path: Path) -> tuple[str | None, dict[int, Tuned]]:
    """The classifier and the options of a file."""
    if not path.is_file():
        raise MissingInputError(f"{path}: no file of selection options. {_CURE}")
    value = unsealed(path, read_json(path, _CURE), _CURE)  # its content is what `write_selection` has written
    try:
        by_k = {int(k): Tuned(**chosen) for k, chosen in value["selection"].items()}
        for k, tuned in by_k.items():
            tuned.cfs(k)
        return value["classifier"], by_k
    except (AttributeError, LookupError, TypeError, ValueError, UserError) as error:
        raise ArtifactError(f"{path} is no file of selection options of this release: {error}. {_CURE}") from error


def _short(classifier: str | None) -> str:
    return classifier[:12] if classifier else "of no serving folder"
