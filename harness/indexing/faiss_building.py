"""Approximate FAISS indexes in bounded memory: a training sample of bounded size, vectors added in blocks, resumable.

With GPUs that FAISS sees, k-means and the assignment of vectors to clusters run on all of them, of indexes whose
clusters are found by comparing all of them (IVF4096).  Seeds are fixed.

Shape legend: N vectors, D dimensions, B vectors of a block."""

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from common.errors import ArtifactError
from common.files import write_atomically
from common.progress import Progress, say
from harness.indexing.faiss_library import cluster_count, empty_index, import_faiss

BLOCK = 65536  # vectors added at a time
UNFINISHED = "vectors.faiss"  # in the folder of an unfinished build
_SAVE_EVERY_SECONDS = 600.0
_TRAINING_PER_CLUSTER, _MIN_PER_CLUSTER = 256, 40  # FAISS's limit of training vectors, and what it warns below
_TRAINING = 2**20  # training vectors, unless that is too few for the number of clusters
_OTHER_CENTROIDS = 256  # of an index without clusters, such as a product quantizer of 8 bits
_SEED = 0


def build_approximate(vectors_ND: np.ndarray, faiss_index: str, out: Path, unfinished: Path | None = None) -> None:
    """Train an index, add all vectors and write it.

    Args:
        vectors_ND: float32, usually mapped from a file.
        faiss_index: Its factory string.
        out: The file.
        unfinished: Folder in which it is saved after training and every ten minutes, and from which an interrupted
            build goes on.

    Raises:
        UserError: If FAISS cannot build it.
        ArtifactError: If writing fails.
    """
    faiss = import_faiss()
    assert faiss is not None  # see `check_installed`
    # a graph draws its levels in order, and FAISS does not save how far: going on would make another graph
    kept = unfinished / UNFINISHED if unfinished is not None and not faiss_index.startswith("HNSW") else None
    index = _unfinished(faiss, kept, vectors_ND.shape[1])
    if fresh := index is None:
        index = empty_index(faiss_index, vectors_ND.shape[1])
    by_flat = hasattr(index, "quantizer") and isinstance(faiss.downcast_index(index.quantizer), faiss.IndexFlat)
    gpus = faiss.get_num_gpus() if by_flat else 0
    if fresh and not index.is_trained:
        _train(faiss, index, vectors_ND, gpus)
        if kept is not None:
            _write(faiss, index, kept)
    add = _adder(faiss, index, gpus)
    saved = time.monotonic()
    with Progress("adding vectors to the index", len(vectors_ND)) as progress:
        progress.skip(index.ntotal)
        for start in range(index.ntotal, len(vectors_ND), BLOCK):
            block_BD = np.ascontiguousarray(vectors_ND[start : start + BLOCK])
            add(block_BD)
            progress.advance(len(block_BD))
            if kept is not None and time.monotonic() - saved > _SAVE_EVERY_SECONDS:
                _write(faiss, index, kept)
                saved = time.monotonic()
    _write(faiss, index, out)


def training_rows(count: int, clusters: int) -> np.ndarray:
    """Positions of the training vectors, drawn with a fixed seed, ascending."""
    most = max(_TRAINING, _MIN_PER_CLUSTER * clusters)
    sample = min(count, _TRAINING_PER_CLUSTER * clusters, most)
    return np.sort(np.random.default_rng(_SEED).choice(count, sample, replace=False))


def _train(faiss: ModuleType, index: Any, vectors_ND: np.ndarray, gpus: int) -> None:
    rows = training_rows(len(vectors_ND), cluster_count(index) or _OTHER_CENTROIDS)
    where = f"{gpus} GPUs" if gpus else "the CPU"
    say(f"training the index on {len(rows):,} of {len(vectors_ND):,} vectors, on {where}.")
    if gpus:  # k-means uses it in the place of the quantizer, whose metric it must have
        index.clustering_index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(index.d))
    with Progress("training the index"):
        index.train(np.ascontiguousarray(vectors_ND[rows]))
    if gpus:
        index.clustering_index = None  # only training uses it, and it is in no file


def _adder(faiss: ModuleType, index: Any, gpus: int) -> Callable[[np.ndarray], object]:
    """The function that adds a block; GPUs find the clusters, which takes most of the time."""
    if not gpus:
        return index.add
    quantizer = faiss.index_cpu_to_all_gpus(faiss.downcast_index(index.quantizer))

    def add(block_BD: np.ndarray) -> None:
        clusters_B1 = np.ascontiguousarray(quantizer.search(block_BD, 1)[1])
        index.add_core(len(block_BD), faiss.swig_ptr(block_BD), None, faiss.swig_ptr(clusters_B1))

    return add


def _unfinished(faiss: ModuleType, file: Path | None, dimensions: int) -> Any:
    """The index that an interrupted build has saved; None if there is none, or it cannot be read."""
    if file is None or not file.is_file():
        return None
    try:
        index = faiss.read_index(str(file))
    except RuntimeError:  # torn; it is built again
        return None
    if index.d != dimensions:
        return None
    say(f"{file}: continuing a trained index with {index.ntotal:,} vectors.")
    return index


def _write(faiss: ModuleType, index: Any, file: Path) -> None:
    try:
        write_atomically(file, lambda temporary: faiss.write_index(index, str(temporary)))
    except RuntimeError as error:  # raised by FAISS if writing fails
        raise ArtifactError(f"{file}: cannot write ({error}). Free space.") from error
