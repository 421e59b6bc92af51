"""The FAISS library, if one is installed, and the kinds of its indexes with their parameters.

Shape legend: N vectors, D dimensions."""

import importlib.metadata
from types import ModuleType
from typing import Literal

from common.errors import UserError
from common.progress import in_bytes

FaissIndex = Literal["flat", "ivf", "ivfpq", "hnsw"]

PQ_CENTROIDS = 256  # of each part of a vector: 8 bits
_MAX_PQ_BYTES = 64  # of a vector by default: as many parts
_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs", "faiss-gpu-cu12", "faiss-gpu-cu11")
_FLOAT_BYTES = 4
_ID_BYTES = 8


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


def check_installed(kind: FaissIndex) -> None:
    """Raise UserError if FAISS is not installed and a kind of index needs it."""
    if kind != "flat" and import_faiss() is None:
        raise UserError(f"faiss_index {kind} needs FAISS. Type: pip install faiss-cpu, or choose flat.")


def check_parameters(
    kind: FaissIndex, count: int, dimensions: int, nlist: int | None, hnsw_links: int, pq_bytes: int | None = None
) -> dict:
    """The parameters of an index, checked and with defaults filled in, for its recipe.

    Args:
        kind: `flat` (exact), `ivf` (clusters), `ivfpq` (clusters of compressed vectors) or `hnsw` (graph).
        count: N.
        dimensions: D.
        nlist: Number of clusters; None: 4 times the square root of `count`.
        hnsw_links: Links per vector of `hnsw`.
        pq_bytes: Bytes of a compressed vector; None: the greatest divisor of D that is at most 64.

    Raises:
        UserError: If one is out of range, or an approximate index is requested and FAISS is not installed.
    """
    check_installed(kind)
    if kind == "flat":
        return {"faiss_index": kind}
    if kind == "hnsw":
        if hnsw_links < 2:
            raise UserError(f"hnsw_links must be at least 2, got {hnsw_links}.")
        return {"faiss_index": kind, "hnsw_links": hnsw_links}
    clusters = min(count, round(4 * count**0.5)) if nlist is None else nlist
    if not 1 <= clusters <= count:
        raise UserError(f"nlist must be 1 to {count:,}, the number of passages, got {nlist}.")
    if kind == "ivf":
        return {"faiss_index": kind, "nlist": clusters}
    if count < PQ_CENTROIDS:
        raise UserError(f"faiss_index ivfpq needs {PQ_CENTROIDS} passages, got {count:,}. Choose flat.")
    divisors = [parts for parts in range(1, dimensions + 1) if dimensions % parts == 0]
    parts = max(each for each in divisors if each <= _MAX_PQ_BYTES) if pq_bytes is None else pq_bytes
    if parts not in divisors:
        raise UserError(
            f"pq_bytes must divide the {dimensions} dimensions of the vectors, got {pq_bytes}: "
            f"{', '.join(map(str, divisors))}."
        )
    return {"faiss_index": kind, "nlist": clusters, "pq_bytes": parts}


def held_bytes(parameters: dict, count: int, dimensions: int) -> int:
    """Memory of an index while it is built, without the vectors' file; about as many in its own file."""
    kind, vector_bytes = parameters["faiss_index"], dimensions * _FLOAT_BYTES
    if kind == "flat":
        return 0
    if kind == "hnsw":  # two links of 4 bytes for each one that is named, on the lowest level
        return count * (vector_bytes + 2 * _FLOAT_BYTES * parameters["hnsw_links"] + _ID_BYTES)
    stored = parameters["pq_bytes"] if kind == "ivfpq" else vector_bytes
    return count * (stored + _ID_BYTES) + parameters["nlist"] * vector_bytes


def check_memory(parameters: dict, count: int, dimensions: int, free_bytes: int | None) -> None:
    """Refuse an index that does not fit the memory in which it is built.

    Args:
        parameters: From `check_parameters`.
        count: N.
        dimensions: D.
        free_bytes: Of RAM; None: unknown, which passes.

    Raises:
        UserError: If it does not fit; names the sizes and what fits.
    """
    needed = held_bytes(parameters, count, dimensions)
    if free_bytes is None or needed <= free_bytes:
        return
    kind, smaller = parameters["faiss_index"], ""
    if kind in ("ivf", "hnsw") and count >= PQ_CENTROIDS:
        compressed = held_bytes(check_parameters("ivfpq", count, dimensions, None, 2), count, dimensions)
        smaller = f"ivfpq, which takes {in_bytes(compressed)}, or "
    raise UserError(
        f"faiss_index {kind} takes {in_bytes(needed)} of memory for {count:,} vectors of {dimensions} dimensions, and "
        f"{in_bytes(free_bytes)} are free. Choose {smaller}flat, which takes none while it is built."
    )
