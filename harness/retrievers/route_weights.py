"""Default weights of HiQA's multi-route retrieval, by the paper's rule.

More weight for the vectors, which hold the headings, in a collection with a clear structure; more for the keywords the
more documents there are for their number of pages.

The paper gives the directions, not the numbers.  Ours:

    alpha = 0.4 + 0.2 * structure,  structure = mean over the segments of min(1, headings above it / 2)
    beta  = 0.2 * ratio / (1 + ratio),  ratio = documents / mean pages of a document
"""

from collections.abc import Iterable
from math import inf
from pathlib import Path

from common.errors import ArtifactError, UserError
from common.records import Passage
from common.sealed_json import read_sealed, write_sealed

ALPHA, BETA = 0.5, 0.1  # for passages that are no segments of documents
_ENOUGH_LEVELS = 2


def weights_of_collection(passages: Iterable[Passage]) -> tuple[float, float]:
    """alpha and beta for the passages of an index.

    Pages are counted by the last page that a document's segments name, one where none does.
    """
    levels: list[int] = []
    pages: dict[str, int] = {}
    for passage in passages:
        about = passage.metadata or {}
        document, headings = about.get("document"), about.get("headings")
        if not isinstance(document, str) or not isinstance(headings, list):
            return ALPHA, BETA
        levels.append(len(headings))
        last = about.get("last_page") or about.get("page") or 1
        pages[document] = max(pages.get(document, 1), last if isinstance(last, int) else 1)
    if not levels:
        return ALPHA, BETA
    structure = sum(min(1, count / _ENOUGH_LEVELS) for count in levels) / len(levels)
    ratio = len(pages) / (sum(pages.values()) / len(pages))
    return 0.4 + 0.2 * structure, 0.2 * ratio / (1 + ratio)


_CURE = "Choose the weights again: infer.py tune on validation questions."


def write_weights(path: Path, alpha: float, beta: float, chosen_on: dict[str, object]) -> None:
    """Write chosen weights and what they were chosen on.

    Raises:
        ArtifactError: If writing fails.
    """
    write_sealed(path, {"alpha": alpha, "beta": beta, "chosen_on": chosen_on})


def is_weights_file(path: Path) -> bool:
    """Whether `write_weights` wrote a file."""
    try:
        read_weights(path)
    except UserError:
        return False
    return True


def read_weights(path: Path) -> tuple[float, float]:
    """alpha and beta of a file.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If it is corrupt.
    """
    value = read_sealed(path, {"alpha": float, "beta": float}, _CURE)
    alpha, beta = value["alpha"], value["beta"]
    if not 0 <= alpha <= 1 or not 0 <= beta < inf:
        raise ArtifactError(f"{path} has weights out of range: alpha {alpha}, beta {beta}. {_CURE}")
    return float(alpha), float(beta)
