"""Default weights of HiQA's multi-route retrieval, by the paper's rule.

More weight for the vectors, which hold the headings, in a collection with a clear structure; more for the keywords the
more documents there are for their number of pages.

The paper gives the directions, not the numbers.  Ours:

    alpha = 0.4 + 0.2 * structure,  structure = mean over the segments of min(1, headings above it / 2)
    beta  = 0.2 * ratio / (1 + ratio),  ratio = documents / mean pages of a document
"""

from collections.abc import Iterable
from math import inf
from typing import Any

from common.fitted_files import FittedFile
from common.records import Passage

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


def _checked(content: dict[str, Any]) -> tuple[float, float]:
    """alpha and beta of a file."""
    alpha, beta = float(content["alpha"]), float(content["beta"])
    if not 0 <= alpha <= 1 or not 0 <= beta < inf:
        raise ValueError(f"weights out of range: alpha {alpha}, beta {beta}")
    return alpha, beta


WEIGHTS = FittedFile("a file of weights", _checked, {"alpha": float, "beta": float})
