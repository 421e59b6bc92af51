"""The FAISS library, if one is installed, and approximate indexes by the strings of its `index_factory`.

Shape legend: N vectors, D dimensions."""

import importlib.metadata
from types import ModuleType
from typing import Any

from common.errors import UserError
from common.progress import in_bytes

FLAT = "flat"  # exact: no index of FAISS's, the stored vectors are searched
KINDS = "IVF4096,Flat (clusters), IVF4096,PQ64x8np (clusters of compressed vectors) or HNSW32 (graph)"

_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs", "faiss-gpu-cu12", "faiss-gpu-cu11")
_FLOAT_BYTES = 4
_ID_BYTES = 8
# np: without polysemous training, which takes most of the time and serves another way of searching
_OF_0_2 = {"ivf": "IVF{nlist},Flat", "ivfpq": "IVF{nlist},PQ{pq_bytes}x8np", "hnsw": "HNSW{hnsw_links}"}


def import_faiss() -> ModuleType | None:
    """The faiss module; None if it is not installed.

    Raises:
        UserError: If several FAISS distributions are installed: they overwrite each other's files.
    """
    installed = []
    for name in _DISTRIBUTIONS:
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        installed.append(name)
    if len(installed) > 1:
        raise UserError(
            f"{' and '.join(installed)} are both installed and overwrite each other's files. "
            f"Type: pip uninstall -y {' '.join(installed)} && pip install {installed[-1]}"
        )
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
    """Refuse an option before anything is read.

    Raises:
        UserError: If it is a word of release 0.2, or needs FAISS, which is not installed.
    """
    if faiss_index in _OF_0_2:
        raise UserError(f"faiss_index {faiss_index} is now a string of faiss.index_factory. Type flat, {KINDS}.")
    if faiss_index != FLAT and import_faiss() is None:
        raise UserError(f"faiss_index {faiss_index} needs FAISS. Type: pip install faiss-cpu, or choose flat.")


def empty_index(faiss_index: str, dimensions: int) -> Any:
    """An approximate index without vectors, which is not trained.

    Args:
        faiss_index: Its factory string.
        dimensions: D.

    Raises:
        UserError: If FAISS knows no such index of such vectors.
    """
    faiss = import_faiss()
    assert faiss is not None  # see `check_installed`
    try:
        index = faiss.index_factory(dimensions, faiss_index, faiss.METRIC_INNER_PRODUCT)
        held_bytes(index, 1)  # HNSW1, a graph without links, is only refused where it is asked for something
    except RuntimeError as error:
        why = str(error).rpartition(": ")[2]
        raise UserError(
            f"faiss_index {faiss_index} is no index of {dimensions} dimensions ({why}). Type flat, {KINDS}."
        ) from error
    return index


def cluster_count(index: Any) -> int | None:
    """The number of clusters of an IVF index, also of one behind a transformation; None of another index."""
    faiss = import_faiss()
    assert faiss is not None
    clusters = faiss.try_extract_index_ivf(index)
    return None if clusters is None else clusters.nlist


def held_bytes(index: Any, count: int) -> int:
    """Memory of an index of so many vectors while it is built, without the vectors' file; about as many in its file."""
    if (clusters := cluster_count(index)) is not None:
        faiss = import_faiss()
        assert faiss is not None
        stored = faiss.extract_index_ivf(index).code_size
        return count * (stored + _ID_BYTES) + clusters * index.d * _FLOAT_BYTES
    if hasattr(index, "hnsw"):
        return count * (index.storage.sa_code_size() + _FLOAT_BYTES * index.hnsw.nb_neighbors(0) + _ID_BYTES)
    return count * index.sa_code_size()


def check_memory(faiss_index: str, count: int, dimensions: int, free_bytes: int | None) -> None:
    """Refuse an index that cannot be built, or does not fit the memory in which it is built.

    Args:
        faiss_index: `FLAT`, or a factory string.
        count: N.
        dimensions: D.
        free_bytes: Of RAM; None: unknown, which passes.

    Raises:
        UserError: As `empty_index`, or if there are too few vectors; if it does not fit, names the sizes.
    """
    if faiss_index == FLAT:
        return
    index = empty_index(faiss_index, dimensions)
    clusters, centroids = cluster_count(index), getattr(getattr(index, "pq", None), "ksub", 0)
    if clusters == 0 or count < max(clusters or 0, centroids):
        raise UserError(
            f"faiss_index {faiss_index} of {count:,} passages is not possible: it needs at least one cluster, and as "
            f"many passages as clusters, and {centroids} if it compresses. Choose fewer clusters, or flat."
        )
    needed = held_bytes(index, count)
    if free_bytes is not None and needed > free_bytes:
        raise UserError(
            f"faiss_index {faiss_index} takes {in_bytes(needed)} of memory for {count:,} vectors of {dimensions} "
            f"dimensions, and {in_bytes(free_bytes)} are free. Choose one that compresses them, such as "
            "IVF4096,PQ64x8np, or flat, which takes none while it is built."
        )
