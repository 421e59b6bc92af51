"""Approximate FAISS indexes in bounded memory: a training sample of bounded size, vectors added in blocks.

With GPUs that FAISS sees, k-means and the assignment of vectors to clusters run on all of them, of indexes whose
clusters are found by comparing all of them (IVF4096).  Seeds are fixed.

Shape legend: N vectors, D dimensions, B vectors of a block."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from common.errors import ArtifactError, UserError
from common.progress import Progress, say
from harness.indexing.faiss_library import KINDS, cluster_count, empty_index, import_faiss

BLOCK = 65536  # vectors added at a time
_TRAINING_PER_CLUSTER, _MIN_PER_CLUSTER = 256, 40  # FAISS's limit of training vectors, and what it warns below
_TRAINING = 2**20  # training vectors, unless that is too few for the number of clusters
_OTHER_CENTROIDS = 256  # of an index without clusters, such as a product quantizer of 8 bits
_SEED = 0


def build_approximate(vectors_ND: np.ndarray, faiss_index: str, out: Path) -> None:
    """Train an index, add all vectors and write it.

    An interrupted build trains and adds again, minutes beside the hours of encoding, whose vectors are kept.

    Args:
        vectors_ND: float32, usually mapped from a file.
        faiss_index: Its factory string.
        out: The file.

    Raises:
        UserError: If FAISS cannot build it.
        ArtifactError: If writing fails.
    """
    faiss = import_faiss()
    assert faiss is not None  # see `check_installed`
    index = empty_index(faiss_index, vectors_ND.shape[1])
    by_flat = hasattr(index, "quantizer") and isinstance(faiss.downcast_index(index.quantizer), faiss.IndexFlat)
    gpus = faiss.get_num_gpus() if by_flat else 0
    try:
        if not index.is_trained:
            _train(faiss, index, vectors_ND, gpus)
        add = _adder(faiss, index, gpus)
        with Progress("adding vectors to the index", len(vectors_ND)) as progress:
            for start in range(0, len(vectors_ND), BLOCK):
                block_BD = np.ascontiguousarray(vectors_ND[start : start + BLOCK])
                add(block_BD)
                progress.update(len(block_BD))
    except RuntimeError as error:  # such as too few vectors for the codes behind a transformation
        why = str(error).rpartition(": ")[2]
        raise UserError(
            f"faiss_index {faiss_index} cannot be built of {len(vectors_ND):,} vectors ({why}). Type flat, {KINDS}."
        ) from error
    try:
        faiss.write_index(index, str(out))
    except RuntimeError as error:  # raised by FAISS if writing fails
        raise ArtifactError(f"{out}: cannot write ({error}). Free space.") from error


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
