"""Vector search by inner product: FAISS on CPU or GPU, or numpy if FAISS is not installed.

The vectors are stored in `vectors.npy`, float32. FAISS or numpy propose candidates; final scores and order are computed
from the stored vectors in double precision, ties by position. So a query finds the same ids alone or in a batch, on a
CPU or a GPU. Approximate indexes add `vectors.faiss`, in CPU format. Both files are mapped: opening an index takes
neither time nor memory.

Shape legend: N vectors, D dimensions, Q queries, K candidates.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import ArtifactError, UserError
from common.files import check_space
from common.progress import say
from harness.indexing.exact_rescoring import Candidates, inner_products, search_exactly
from harness.indexing.faiss_building import build_approximate
from harness.indexing.faiss_devices import on_gpus, place, wants_gpu
from harness.indexing.faiss_library import FLAT, import_faiss

VECTORS, APPROXIMATE = "vectors.npy", "vectors.faiss"

_GPU_MAX_CANDIDATES = 2048  # FAISS's limit on a GPU
_BLOCK = 65536  # vectors that numpy scores at a time


def write_vectors(folder: Path, chunks: Iterator[np.ndarray], count: int, dimensions: int, faiss_index: str) -> None:
    """Write the searchable files.

    Args:
        folder: Receives `VECTORS`, and `APPROXIMATE` unless the index is flat.
        chunks: The vectors in order, float32 (n, D) each.
        count: Total number of vectors.
        dimensions: D.
        faiss_index: `FLAT`, or the factory string of an approximate index.

    Raises:
        ArtifactError: If writing fails, for example because the disk is too small.
    """
    check_space(folder / VECTORS, count * dimensions * 4)
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dimensions)}
    end = 0
    with (folder / VECTORS).open("wb") as file:  # not a memory map: on a full disk it raises SIGBUS, not an exception
        np.lib.format.write_array_header_1_0(file, header)
        for chunk_ND in chunks:
            file.write(np.ascontiguousarray(chunk_ND, dtype="<f4").data)
            end += len(chunk_ND)
    if end != count:
        raise ArtifactError(f"{folder}: got {end} vectors for {count} passages. Start the build again.")
    if faiss_index != FLAT:
        build_approximate(open_vectors(folder), faiss_index, folder / APPROXIMATE)


def open_vectors(folder: Path) -> np.ndarray:
    """The stored vectors, (N, D), mapped from their file."""
    return np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)


_EXACT_SCORES = re.compile("flat|Flat|HNSW[0-9]+(,Flat)?|IVF[^,]*,Flat")  # others search changed or compressed vectors


class Vectors:
    """The vectors of an index folder, opened for search.

    Args:
        folder: Written by `write_vectors`.
        faiss_index: As passed to `write_vectors`.
        device: FAISS's device: `cpu`, `cuda` (the GPU of LOCAL_RANK), `all` (split over all GPUs), or `auto`: `cuda` if
            FAISS sees a GPU and the index fits its free memory. The encoder's device is separate.
        nprobe: Number of clusters searched of an IVF index.
        ef_search: efSearch of an HNSW index: candidates kept during the graph search.
        k_factor: Candidates of an index of compressed vectors for each passage asked for; their scores are computed
            from the stored vectors.

    Raises:
        UserError: If the device or a parameter is not possible here.
    """

    def __init__(
        self,
        folder: Path,
        faiss_index: str,
        device: str = "auto",
        nprobe: int = 16,
        ef_search: int = 64,
        k_factor: int = 10,
    ) -> None:
        self.vectors_ND = open_vectors(folder)
        self._process, self._faiss = os.getpid(), import_faiss()
        self._k_factor = 1 if _EXACT_SCORES.fullmatch(faiss_index) else k_factor
        self._index: Any = None
        self._max_candidates = len(self.vectors_ND)
        if self._faiss is None:
            say("FAISS is not installed: using exact numpy search, which is slower. For FAISS: pip install faiss-cpu.")
            return
        on_gpu = self._put_on_gpus(folder, faiss_index, device)
        if not on_gpu and faiss_index != FLAT:
            # of IVF indexes the lists stay in the file; a graph is read
            mapped = self._faiss.IO_FLAG_MMAP if "IVF" in faiss_index else 0
            self._index = self._faiss.read_index(str(folder / APPROXIMATE), mapped)
        if "IVF" in faiss_index:
            space = self._faiss.GpuParameterSpace() if on_gpu else self._faiss.ParameterSpace()
            space.set_index_parameter(self._index, "nprobe", nprobe)
        elif faiss_index.startswith("HNSW"):
            self._index.hnsw.efSearch = ef_search

    def _put_on_gpus(self, folder: Path, faiss_index: str, device: str) -> bool:
        """Copy the index to the GPUs where it is to be searched; False if it is to be searched in RAM."""
        faiss = self._faiss
        assert faiss is not None
        gpus = faiss.get_num_gpus()
        if not wants_gpu(device, faiss_index, gpus):
            return False
        import torch

        flat = faiss_index == FLAT
        searched = self.vectors_ND.nbytes if flat else (folder / APPROXIMATE).stat().st_size
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        chosen, why = place(device, faiss_index, searched, gpus, lambda gpu: torch.cuda.mem_get_info(gpu)[0], rank)
        say(f"{folder}: {why}.")
        if not chosen:
            return False
        try:
            if flat:  # straight from the mapped file, at once: FAISS reserves the memory and copies in pages
                self._index = on_gpus(faiss, faiss.IndexFlatIP(self.vectors_ND.shape[1]), chosen)
                self._index.add(self.vectors_ND)
            else:
                self._index = on_gpus(faiss, faiss.read_index(str(folder / APPROXIMATE)), chosen)
        except UserError as error:
            if device != "auto":
                raise
            say(f"{folder}: in RAM after all: {error}")
            return False
        self._max_candidates = min(self._max_candidates, _GPU_MAX_CANDIDATES)
        return True

    def __len__(self) -> int:
        return len(self.vectors_ND)

    def search(self, queries_QD: np.ndarray, k: int) -> list[list[tuple[int, float]]]:
        """Position and inner product of the k nearest vectors of each query, best first, ties by position.

        Raises:
            UserError: If k is above the GPU's limit.
            RuntimeError: In a forked process, where FAISS would hang because its threads are not copied.
        """
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

        def candidates(rows: np.ndarray, wanted: int) -> Iterator[Candidates]:
            for places in self._candidates(queries_QD[rows], wanted):
                positions = places[places >= 0]
                yield positions, self.vectors_ND[positions]

        return search_exactly(queries_QD, k, self._k_factor * k, self._max_candidates, candidates)

    def similarities(self, query_D: np.ndarray) -> np.ndarray:
        """Inner product of every vector with a query, float64 (N,), with the same sums as `search`."""
        blocks = range(0, len(self), _BLOCK)
        return np.concatenate([inner_products(self.vectors_ND[start : start + _BLOCK], query_D) for start in blocks])

    def _candidates(self, queries_QD: np.ndarray, wanted: int) -> np.ndarray:
        """Positions of the nearest vectors, (Q, wanted); -1 if an approximate index found fewer."""
        if self._index is not None:
            return self._index.search(queries_QD, wanted)[1]
        if self._faiss is not None:  # on the mapped vectors, without a copy of them
            return self._faiss.knn(queries_QD, self.vectors_ND, wanted, self._faiss.METRIC_INNER_PRODUCT)[1]
        nearest = (np.argpartition(-self.similarities(query_D), wanted - 1)[:wanted] for query_D in queries_QD)
        return np.stack([*nearest])
