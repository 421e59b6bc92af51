"""The FAISS library, if it is installed, and approximate indexes by the strings of its `index_factory`.

Shape legend: N vectors, D dimensions."""

from types import ModuleType
from typing import Any

from common.errors import UserError

FLAT = "flat"  # exact: no index of FAISS's, the stored vectors are searched
KINDS = "IVF4096,Flat (clusters), IVF4096,PQ64x8np (clusters of compressed vectors) or HNSW32 (graph)"

# np: without polysemous training, which takes most of the time and serves another way of searching
_OF_0_2 = {"ivf": "IVF{nlist},Flat", "ivfpq": "IVF{nlist},PQ{pq_bytes}x8np", "hnsw": "HNSW{hnsw_links}"}


def import_faiss() -> ModuleType | None:
    """The faiss module; None if it is not installed."""
    try:
        import faiss
    except ModuleNotFoundError:
        return None
    return faiss


def factory_string(recorded: dict) -> str:
    """`FLAT` or the factory string of an index, of its recipe; release 0.2 recorded a kind and parameters."""
    kind = recorded["faiss_index"]
    return _OF_0_2.get(kind, kind).format(**recorded)


def check_installed(faiss_index: str) -> None:
    """Raise UserError for a word of release 0.2, or if an index needs FAISS, which is not installed: at once."""
    if faiss_index in _OF_0_2:
        raise UserError(f"faiss_index {faiss_index} is now a string of faiss.index_factory. Type flat, {KINDS}.")
    if faiss_index != FLAT and import_faiss() is None:
        raise UserError(f"faiss_index {faiss_index} needs FAISS. Type: pip install faiss-cpu, or choose flat.")


def empty_index(faiss_index: str, dimensions: int, count: int | None = None) -> Any:
    """An approximate index without vectors, which is not trained.

    Args:
        faiss_index: Its factory string.
        dimensions: D.
        count: N, where it is known.

    Raises:
        UserError: If FAISS knows no such index of such vectors, or needs more of them.
    """
    faiss = import_faiss()
    assert faiss is not None  # see `check_installed`
    try:
        index = faiss.index_factory(dimensions, faiss_index, faiss.METRIC_INNER_PRODUCT)
        if hasattr(index, "hnsw"):
            index.hnsw.nb_neighbors(0)  # a graph without links, HNSW1, is only refused where it is asked for something
    except RuntimeError as error:
        why = str(error).rpartition(": ")[2]
        raise UserError(
            f"faiss_index {faiss_index} is no index of {dimensions} dimensions ({why}). Type flat, {KINDS}."
        ) from error
    clusters, centroids = cluster_count(index), getattr(getattr(index, "pq", None), "ksub", 0)
    if count is not None and (clusters == 0 or count < max(clusters or 0, centroids)):
        raise UserError(
            f"faiss_index {faiss_index} of {count:,} passages is not possible: it needs at least one cluster, and as "
            f"many passages as clusters, and {centroids} if it compresses. Choose fewer clusters, or flat."
        )
    return index


def cluster_count(index: Any) -> int | None:
    """The number of clusters of an IVF index, also of one behind a transformation; None of another index."""
    faiss = import_faiss()
    assert faiss is not None
    clusters = faiss.try_extract_index_ivf(index)
    return None if clusters is None else clusters.nlist
