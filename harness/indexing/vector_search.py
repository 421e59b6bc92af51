"""Vector search by inner product: FAISS on CPU or GPU, or numpy if FAISS is not installed.

The vectors are stored in `vectors.npy`, float32.  FAISS or numpy propose candidates; final scores and order are computed
from the stored vectors in double precision, ties by position.  So a query finds the same ids alone or in a batch, on a CPU
or a GPU.  Approximate indexes add `vectors.faiss`, in CPU format.

Shape legend: N vectors, D dimensions, Q queries, K candidates."""

import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

import numpy as np

from common.checks import check_at_least, check_choice
from common.errors import ArtifactError, UserError
from common.progress import say

FaissIndex = Literal["flat", "ivf", "hnsw"]

VECTORS, APPROXIMATE = "vectors.npy", "vectors.faiss"

_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs", "faiss-gpu-cu12", "faiss-gpu-cu11")
_EXTRA_CANDIDATES = 16  # candidates beyond k, so that ties at rank k are ordered by position and not by FAISS
_TIE_TOLERANCE = 1e-5  # scores this close, relative to the best, may come in any order from float32 sums
_GPU_MAX_CANDIDATES = 2048  # FAISS's limit on a GPU
_GPU_SCRATCH_BYTES = 3 * 2**29  # that FAISS reserves on a GPU of more than 8 GB
_BLOCK = 65536  # vectors that numpy scores at a time
_SEED = 0


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


def check_parameters(kind: FaissIndex, count: int, nlist: int | None, hnsw_links: int) -> dict:
    """The parameters of an index, checked and with defaults filled in, for its recipe.

    Args:
        kind: `flat` (exact), `ivf` (clusters) or `hnsw` (graph).
        count: Number of vectors.
        nlist: Number of `ivf` clusters; None: 4 times the square root of `count`.
        hnsw_links: Links per vector of `hnsw`.

    Raises:
        UserError: If one is out of range, or an approximate index is requested and FAISS is not installed.
    """
    check_choice(get_args(FaissIndex), faiss_index=kind)
    if kind == "flat":
        return {"faiss_index": kind}
    if import_faiss() is None:
        raise UserError(f"faiss_index {kind} needs FAISS. Type: pip install faiss-cpu, or choose flat.")
    if kind == "hnsw":
        check_at_least(2, hnsw_links=hnsw_links)
        return {"faiss_index": kind, "hnsw_links": hnsw_links}
    clusters = min(count, round(4 * count**0.5)) if nlist is None else nlist
    if not 1 <= clusters <= count:
        raise UserError(f"nlist must be 1 to {count:,}, the number of passages, got {nlist}.")
    return {"faiss_index": kind, "nlist": clusters}


def write_vectors(folder: Path, chunks: Iterator[np.ndarray], count: int, dimensions: int, parameters: dict) -> None:
    """Write the searchable files.

    Args:
        folder: Receives `VECTORS`, and `APPROXIMATE` unless the index is flat.
        chunks: The vectors in order, float32 (n, D) each.
        count: Total number of vectors.
        dimensions: D.
        parameters: From `check_parameters`.
    """
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dimensions)}
    end = 0
    with (folder / VECTORS).open("wb") as file:  # not a memory map: on a full disk it raises SIGBUS, not an exception
        np.lib.format.write_array_header_1_0(file, header)
        for chunk_ND in chunks:
            file.write(np.ascontiguousarray(chunk_ND, dtype="<f4").data)
            end += len(chunk_ND)
    if end != count:
        raise ArtifactError(f"{folder}: got {end} vectors for {count} passages. Start the build again.")
    if parameters["faiss_index"] != "flat":
        _write_approximate(folder, parameters)


def _write_approximate(folder: Path, parameters: dict) -> None:
    faiss = import_faiss()
    assert faiss is not None  # see `check_parameters`
    vectors_ND = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
    count, dimensions = vectors_ND.shape
    if parameters["faiss_index"] == "ivf":
        description = f"IVF{parameters['nlist']},Flat"
    else:
        description = f"HNSW{parameters['hnsw_links']}"
    index = faiss.index_factory(dimensions, description, faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        sample = min(count, 256 * parameters["nlist"])  # FAISS's own limit of training vectors
        rows = np.sort(np.random.default_rng(_SEED).choice(count, sample, replace=False))
        index.train(np.ascontiguousarray(vectors_ND[rows]))
    for start in range(0, count, _BLOCK):
        index.add(np.ascontiguousarray(vectors_ND[start : start + _BLOCK]))
    try:
        faiss.write_index(index, str(folder / APPROXIMATE))
    except RuntimeError as error:  # raised by FAISS if writing fails
        raise ArtifactError(f"{folder / APPROXIMATE}: cannot write ({error}). Free space.") from error


def search_bytes(folder: Path, parameters: dict, gpus: int, device: str) -> tuple[int, int, int]:
    """Memory of an opened index, bytes: in RAM, on each GPU that it is on, and mapped from files.

    Args:
        folder: Written by `write_vectors`; only headers are read.
        parameters: As passed to `write_vectors`.
        gpus: Number of GPUs of the machine.
        device: As in `Vectors`.

    Raises:
        UserError: If the device is not possible with the FAISS that is installed.
        ArtifactError: If the vector file cannot be read.
    """
    kind, faiss = parameters["faiss_index"], import_faiss()
    vectors_bytes = open_vectors(folder).nbytes
    if faiss is None:
        return 0, 0, vectors_bytes
    searched = vectors_bytes if kind == "flat" else (folder / APPROXIMATE).stat().st_size
    if not wants_gpu(device, kind, gpus if hasattr(faiss, "StandardGpuResources") else 0):
        return searched, 0, vectors_bytes
    return 0, searched // (gpus if device == "all" else 1) + _GPU_SCRATCH_BYTES, vectors_bytes


def open_vectors(folder: Path) -> np.ndarray:
    """The stored vectors, (N, D), mapped from their file.

    Raises:
        ArtifactError: If the file cannot be read.
    """
    try:
        return np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{folder / VECTORS} cannot be read ({error}). Build the index again.") from error


def wants_gpu(device: str, kind: FaissIndex, gpus: int) -> bool:
    """Whether an index of this kind is searched on a GPU.

    Raises:
        UserError: If the device is unknown, or not possible with that many GPUs that FAISS sees.
    """
    check_choice(("auto", "cpu", "cuda", "all"), index_device=device)
    possible = gpus > 0 and kind != "hnsw"
    if device in ("cuda", "all") and not possible:
        why = "an HNSW index cannot be searched on a GPU" if gpus else "this FAISS sees no GPU"
        raise UserError(f"index device {device} is not possible: {why}. Choose cpu or auto, or pip install faiss-gpu.")
    return possible and device != "cpu"


class Vectors:
    """The vectors of an index folder, opened for search.

    Args:
        folder: Written by `write_vectors`.
        parameters: As passed to `write_vectors`.
        device: FAISS's device: `cpu`, `cuda` (the GPU of LOCAL_RANK), `all` (split over all GPUs), or `auto`: one GPU
            if FAISS sees one.  The encoder's device is separate.
        nprobe: Number of `ivf` clusters searched.
        ef_search: efSearch of `hnsw`: candidates kept during the graph search.

    Raises:
        UserError: If the device or a parameter is not possible here.
        ArtifactError: If the vector file cannot be read.
    """

    def __init__(
        self, folder: Path, parameters: dict, device: str = "auto", nprobe: int = 16, ef_search: int = 64
    ) -> None:
        check_at_least(1, nprobe=nprobe, ef_search=ef_search)
        self.vectors_ND = open_vectors(folder)
        self._process, self._faiss = os.getpid(), import_faiss()
        kind = parameters["faiss_index"]
        on_gpu = wants_gpu(device, kind, self._faiss.get_num_gpus() if self._faiss is not None else 0)
        self._index = None
        self._max_candidates = len(self.vectors_ND)
        if self._faiss is None:
            say("FAISS is not installed: using exact numpy search, which is slower. For FAISS: pip install faiss-cpu.")
            return
        if kind == "flat":
            self._index = self._faiss.IndexFlatIP(self.vectors_ND.shape[1])
            self._index.add(self.vectors_ND)  # at once: block by block the memory would grow by doubling
        else:
            self._index = self._faiss.read_index(str(folder / APPROXIMATE))
        if on_gpu:
            self._max_candidates = min(self._max_candidates, _GPU_MAX_CANDIDATES)
            self._move_to_gpu(device)
        if kind == "ivf":
            space = self._faiss.GpuParameterSpace() if on_gpu else self._faiss.ParameterSpace()
            space.set_index_parameter(self._index, "nprobe", nprobe)
        elif kind == "hnsw":
            self._index.hnsw.efSearch = ef_search

    def _move_to_gpu(self, device: str) -> None:
        faiss = self._faiss
        assert faiss is not None
        if device == "all":
            options = faiss.GpuMultipleClonerOptions()
            options.shard = True  # split over the GPUs instead of copied to each
            self._index = faiss.index_cpu_to_all_gpus(self._index, options)
        else:
            gpu = int(os.environ.get("LOCAL_RANK", "0")) % faiss.get_num_gpus()
            self._resources = faiss.StandardGpuResources()  # must live as long as the index
            self._index = faiss.index_cpu_to_gpu(self._resources, gpu, self._index)

    def __len__(self) -> int:
        return len(self.vectors_ND)

    def search(self, queries_QD: np.ndarray, k: int) -> list[list[tuple[int, float]]]:
        """Position and inner product of the k nearest vectors of each query, best first, ties by position.

        Raises:
            UserError: If k is below 1 or above the GPU's limit.
            RuntimeError: In a forked process, where FAISS would hang because its threads are not copied.
        """
        check_at_least(1, k=k)
        if os.getpid() != self._process:
            raise RuntimeError("A dense index cannot be searched in a forked process: open it there, or use spawn.")
        k = min(k, len(self))
        if k > self._max_candidates:
            raise UserError(
                f"k = {k:,} is above FAISS's GPU limit of {self._max_candidates:,}. Choose index device cpu."
            )
        if len(queries_QD) == 0:
            return []
        queries_QD = np.ascontiguousarray(queries_QD, dtype=np.float32)
        results: list[list[tuple[int, float]]] = [[] for _ in queries_QD]
        open_rows, wanted = np.arange(len(queries_QD)), min(k + _EXTRA_CANDIDATES, self._max_candidates)
        while True:
            unsettled = []
            for row, candidates in zip(open_rows, self._candidates(queries_QD[open_rows], wanted), strict=True):
                results[row], settled = self._rescore(queries_QD[row], candidates, k)
                if not settled:
                    unsettled.append(row)
            if not unsettled or wanted == self._max_candidates:
                return results
            open_rows, wanted = np.array(unsettled), min(8 * wanted, self._max_candidates)

    def similarities(self, query_D: np.ndarray) -> np.ndarray:
        """Inner product of every vector with a query, float64 (N,), with the same sums as `search`."""
        blocks = range(0, len(self), _BLOCK)
        return np.concatenate([self._inner(self.vectors_ND[start : start + _BLOCK], query_D) for start in blocks])

    @staticmethod
    def _inner(vectors_CD: np.ndarray, query_D: np.ndarray) -> np.ndarray:
        # row sums instead of a BLAS product, whose last bits depend on a row's place in the matrix
        return (vectors_CD.astype(np.float64) * query_D.astype(np.float64)).sum(axis=1)

    def _candidates(self, queries_QD: np.ndarray, wanted: int) -> np.ndarray:
        """Positions of the nearest vectors, (Q, wanted); -1 if an approximate index found fewer."""
        if self._index is not None:
            return self._index.search(queries_QD, wanted)[1]
        return self._search_with_numpy(queries_QD, wanted)

    def _search_with_numpy(self, queries_QD: np.ndarray, wanted: int) -> np.ndarray:
        best_QK = np.empty((len(queries_QD), 0), dtype=np.int64)
        scores_QK = np.empty((len(queries_QD), 0), dtype=np.float32)
        for start in range(0, len(self), _BLOCK):
            block_QB = queries_QD @ self.vectors_ND[start : start + _BLOCK].T
            rows_QB = np.broadcast_to(np.arange(start, start + block_QB.shape[1]), block_QB.shape)
            best_QK = np.concatenate((best_QK, rows_QB), axis=1)
            scores_QK = np.concatenate((scores_QK, block_QB), axis=1)
            if scores_QK.shape[1] > wanted:
                keep = np.argpartition(-scores_QK, wanted - 1, axis=1)[:, :wanted]
                best_QK = np.take_along_axis(best_QK, keep, axis=1)
                scores_QK = np.take_along_axis(scores_QK, keep, axis=1)
        return best_QK

    def _rescore(self, query_D: np.ndarray, candidates: np.ndarray, k: int) -> tuple[list[tuple[int, float]], bool]:
        """The k best candidates, and whether more candidates cannot change them: if the last candidate ties with the
        k-th, a vector with the same score and a lower position may be missing."""
        positions = candidates[candidates >= 0]
        scores = self._inner(self.vectors_ND[positions], query_D)
        order = np.lexsort((positions, -scores))
        settled = len(order) <= k or scores[order[k - 1]] - scores[order[-1]] > _TIE_TOLERANCE * abs(scores[order[0]])
        return [(int(positions[i]), float(scores[i])) for i in order[:k]], bool(settled) or len(order) < len(candidates)
