"""Vectors on disk: FAISS against numpy, exact against approximate, batches, forks, GPUs."""

import os
from pathlib import Path

import numpy as np
import pytest

from harness.indexing import faiss_library, vector_search
from harness.indexing.vector_search import Vectors, write_vectors

pytestmark = pytest.mark.numeric


def write(folder: Path, vectors_ND: np.ndarray, faiss_index: str = "flat", **searched) -> Vectors:
    write_vectors(folder, iter(np.array_split(vectors_ND, 3)), *vectors_ND.shape, faiss_index)
    return Vectors(folder, faiss_index, "cpu", **searched)


def test_scores_do_not_depend_on_the_batch_and_equal_vectors_come_in_the_order_of_the_corpus(tmp_path) -> None:
    vectors_ND = np.random.default_rng(0).standard_normal((500, 24), dtype=np.float32)
    vectors_ND[100:] = vectors_ND[100]
    found = write(tmp_path, vectors_ND)
    together = found.search(vectors_ND[70:101], 9)
    assert together == [found.search(query_D[None], 9)[0] for query_D in vectors_ND[70:101]]
    assert [position for position, _ in together[-1]] == [*range(100, 109)]


@pytest.mark.parametrize("block", [7, 65536])
def test_numpy_finds_what_faiss_finds(tmp_path, monkeypatch, block) -> None:
    rng = np.random.default_rng(1)
    vectors_ND, queries_QD = (rng.standard_normal((n, 8), dtype=np.float32) for n in (60, 5))
    with_faiss = write(tmp_path, vectors_ND)
    monkeypatch.setattr(vector_search, "import_faiss", lambda: None)
    monkeypatch.setattr(vector_search, "_BLOCK", block)
    without = Vectors(tmp_path, "flat")
    for k in (1, 10, 60, 100):
        assert without.search(queries_QD, k) == with_faiss.search(queries_QD, k)


GPU = pytest.mark.gpu
KINDS = ["IVF8,Flat", "IVF8_HNSW8,Flat", "IVF8,PQ2x8np", "OPQ4,IVF8,PQ4x8np", "SQ8", "HNSW8"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_approximate_index_that_looks_everywhere_is_exact(tmp_path, kind) -> None:
    rng = np.random.default_rng(2)
    vectors_ND, queries_QD = (rng.standard_normal((n, 8), dtype=np.float32) for n in (400, 5))
    exact = write(tmp_path, vectors_ND).search(queries_QD, 10)
    assert write(tmp_path, vectors_ND, kind, nprobe=8, k_factor=40, ef_search=400).search(queries_QD, 10) == exact
    if "IVF" in kind:  # fewer clusters find less, and no -1 among it
        less = Vectors(tmp_path, kind, "cpu", nprobe=1).search(queries_QD, 400)
        assert all(0 < len(found) < 400 for found in less)


@pytest.mark.parametrize("kind", ["IVF8,PQ4x8np", "PCA12,IVF8,Flat"])  # the second is of changed vectors
def test_more_candidates_of_compressed_vectors_find_more(tmp_path, kind: str) -> None:
    rng = np.random.default_rng(4)
    vectors_ND, queries_QD = (rng.standard_normal((n, 16), dtype=np.float32) for n in (1000, 40))
    exact = np.argsort(-(queries_QD.astype(np.float64) @ vectors_ND.T.astype(np.float64)), axis=1)[:, :10]
    write(tmp_path, vectors_ND, kind)
    shares = []
    for k_factor in (1, 8):
        found = Vectors(tmp_path, kind, "cpu", nprobe=8, k_factor=k_factor).search(queries_QD, 10)
        pairs = zip(found, exact, strict=True)
        shares.append(np.mean([len({n for n, _ in hits} & set(rows)) / 10 for hits, rows in pairs]))
        for hits, query_D in zip(found, queries_QD, strict=True):  # scores of the vectors, not of compressed ones
            own = vectors_ND[[n for n, _ in hits]].astype(np.float64) @ query_D.astype(np.float64)
            assert [score for _, score in hits] == pytest.approx(own.tolist())
    assert shares[0] < shares[1] > 0.9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_told_instead_of_hanging(tmp_path) -> None:
    opened = write(tmp_path, np.eye(4, dtype=np.float32))
    child = os.fork()
    if child == 0:
        try:
            opened.search(np.eye(4, dtype=np.float32), 1)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


SEARCHED = [("flat", {}), ("IVF8,Flat", {"nprobe": 8}), ("IVF8,PQ32x8np", {"nprobe": 8, "k_factor": 40})]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU), pytest.param("all", marks=GPU)])
@pytest.mark.parametrize(("kind", "tried"), SEARCHED)
def test_faiss_on_a_gpu_finds_the_same_ids(tmp_path, kind, tried, device) -> None:
    faiss = faiss_library.import_faiss()
    if device != "cpu" and (faiss is None or faiss.get_num_gpus() == 0):
        pytest.skip("needs a GPU and faiss-gpu: equal ids and scores of FAISS on CPU and GPU")
    rng = np.random.default_rng(0)
    vectors_ND, queries_QD = (rng.standard_normal((n, 32), dtype=np.float32) for n in (5000, 20))
    on_cpu = write(tmp_path, vectors_ND, kind, **tried)
    searched = Vectors(tmp_path, kind, device, nprobe=8, k_factor=40)
    assert searched.search(queries_QD, 50) == on_cpu.search(queries_QD, 50)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say how much memory was used")
def test_opening_and_searching_a_flat_index_copies_no_vectors(tmp_path: Path) -> None:
    count, dimensions = 5 * 65536, 64
    chunk = np.random.default_rng(0).standard_normal((65536, dimensions), dtype=np.float32)
    write_vectors(tmp_path, iter([chunk] * 5), count, dimensions, "flat")
    queries_QD = chunk[:3]

    def held() -> int:
        (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssAnon")]
        return int(line.split()[1]) * 1024

    before = held()
    opened = Vectors(tmp_path, "flat", "cpu")
    assert held() - before < 2**20
    assert len(opened.search(queries_QD, 3)[0]) == 3
    assert held() - before < 0.5 * count * dimensions * 4
