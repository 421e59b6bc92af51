"""The rows of HiQA's study: the system's retriever, its routes alone, and the same routes over other indexes.

The other indexes are of the same documents.
"""

from collections.abc import Mapping
from pathlib import Path

from common.errors import MissingInputError, UserError
from harness.indexing.index_folder import MANIFEST
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.keywords import KeywordRetriever
from harness.retrievers.multi_route import MultiRouteRetriever

OWN = "HCA, three routes"
KINDS = ("dense", "bm25", "keywords")  # sub-folders of a row's folder


def check_rows(rows: Mapping[str, Path]) -> None:
    """Raise MissingInputError if an index of a further row is missing."""
    for folder in rows.values():
        for kind in KINDS:
            if not (Path(folder) / kind / MANIFEST).is_file():
                raise MissingInputError(
                    f"study.rows: {Path(folder) / kind} is no index. Build it: infer.py index --documents FOLDER "
                    f"--kind {kind} --out {Path(folder) / kind}."
                )


def retrievers_of(own: Retriever, rows: Mapping[str, Path]) -> dict[str, Retriever]:
    """The retriever of every row by name, the system's own first.

    Args:
        own: Of the system; one that is no MultiRouteRetriever is the only row.
        rows: Name -> folder with the indexes of KINDS; they are searched with the encoder and the weights of the own
            retriever.

    Raises:
        UserError: If there are further rows and no weights for them.
    """
    if not isinstance(own, MultiRouteRetriever):
        if rows:
            raise UserError("study.rows needs a MultiRouteRetriever, whose weights the further rows share.")
        return {OWN.partition(",")[0]: own}
    found: dict[str, Retriever] = {
        OWN: own,
        "vectors only": own.with_options(alpha=1.0, beta=0.0),
        "BM25 only": own.with_options(alpha=0.0, beta=0.0),
    }
    if own.keywords is not None:
        found["without keywords"] = own.with_options(beta=0.0)
    if own.section_words:
        found["segments alone"] = own.with_options(section_words=0)
    for name, folder in rows.items():
        dense, words, keywords = (Path(folder) / kind for kind in KINDS)
        vectors = DenseRetriever(dense, str(own.dense.encoder.device), encoder=own.dense.encoder.name)
        found[name] = MultiRouteRetriever(
            vectors,
            Bm25Retriever(words),
            KeywordRetriever(keywords),
            own.alpha,
            own.beta,
            own.candidates,
            own.scaling,
            own.section_words,
        )
    return found
