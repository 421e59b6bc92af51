"""Approximate indexes: training, adding in blocks, what does not fit, where they are searched."""

import re
from pathlib import Path

import faiss
import numpy as np
import pytest

from harness.indexing import faiss_building
from harness.indexing.faiss_building import build_approximate, training_rows
from harness.indexing.faiss_devices import GPU_SCRATCH_BYTES, place
from harness.indexing.faiss_library import factory_string

GIB = 2**30
RNG = np.random.default_rng(0)
VECTORS_ND = RNG.standard_normal((700, 16), dtype=np.float32)


CLUSTERS, COMPRESSED, GRAPH = "IVF8,Flat", "IVF8,PQ4x8np", "HNSW8"


@pytest.mark.parametrize("kind", [CLUSTERS, COMPRESSED, "OPQ4,IVF8,PQ4x8np", "PQ4x8np", GRAPH])
def test_blocks_and_a_second_build_give_the_same_bytes(tmp_path: Path, monkeypatch, kind: str) -> None:
    """What runs on GPUs too, where an index on the CPU takes its place."""
    build_approximate(VECTORS_ND, kind, tmp_path / "whole")
    moved = []
    if kind in (CLUSTERS, COMPRESSED):
        monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
        monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: moved.append(type(index).__name__) or index)
        build_approximate(VECTORS_ND, kind, tmp_path / "gpu")
        assert moved == ["IndexFlatIP", "IndexFlat"]  # of k-means, and of the assignment
        assert (tmp_path / "gpu").read_bytes() == (tmp_path / "whole").read_bytes()
    monkeypatch.setattr(faiss_building, "BLOCK", 100)
    build_approximate(VECTORS_ND, kind, tmp_path / "blocks")
    assert faiss.read_index(str(tmp_path / "blocks")).ntotal == 700
    if kind != GRAPH:  # whose links go by the order in which threads add vectors
        assert (tmp_path / "blocks").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.gpu
def test_an_index_trained_on_gpus_finds_what_one_trained_on_the_cpu_finds(tmp_path: Path, monkeypatch) -> None:
    if faiss.get_num_gpus() == 0:
        pytest.skip("needs a GPU and faiss-gpu: k-means and assignment on GPUs")
    vectors_ND = RNG.standard_normal((20_000, 32), dtype=np.float32)
    queries_QD, shares = vectors_ND[:200] + 0.1, []
    exact = faiss.knn(queries_QD, vectors_ND, 10, faiss.METRIC_INNER_PRODUCT)[1]
    for gpus in (faiss.get_num_gpus(), 0):
        monkeypatch.setattr(faiss, "get_num_gpus", lambda gpus=gpus: gpus)
        build_approximate(vectors_ND, "IVF64,Flat", tmp_path / str(gpus))
        index = faiss.read_index(str(tmp_path / str(gpus)))
        index.nprobe = 16
        found = index.search(queries_QD, 10)[1]
        shares.append(np.mean([len(set(one) & set(other)) / 10 for one, other in zip(found, exact, strict=True)]))
    assert shares[0] == pytest.approx(shares[1], abs=0.05)
    assert min(shares) > 0.8


def test_the_training_sample_is_bounded_and_drawn_alike(monkeypatch) -> None:
    assert training_rows(1000, 2).tolist() == sorted(np.random.default_rng(0).choice(1000, 512, replace=False).tolist())
    monkeypatch.setattr(faiss_building, "_TRAINING", 2**12)
    assert len(training_rows(100_000, 64)) == 2**12
    assert len(training_rows(100_000, 500)) == 40 * 500  # FAISS warns below 39 for each cluster
    assert training_rows(5, 5).tolist() == [0, 1, 2, 3, 4]


def test_an_index_of_release_0_2_is_known_by_its_factory_string() -> None:
    recorded = [
        {"faiss_index": "flat"}, {"faiss_index": "ivf", "nlist": 8}, {"faiss_index": "hnsw", "hnsw_links": 32},
        {"faiss_index": "ivfpq", "nlist": 8, "pq_bytes": 4}, {"faiss_index": COMPRESSED}
    ]  # fmt: skip
    assert [*map(factory_string, recorded)] == ["flat", CLUSTERS, "HNSW32", COMPRESSED, COMPRESSED]


SCRATCH = GPU_SCRATCH_BYTES
PLACES = [  # device, kind, size, free of each GPU, rank; GPUs, words of the line
    ("auto", "flat", GIB, [4 * GIB], 0, (0,), "on GPU 0: it takes 2.5 GiB on GPU 0, where 4.0 GiB are free"),
    ("auto", "flat", GIB, [4 * GIB, 4 * GIB], 3, (1,), "on GPU 1"),
    ("auto", "flat", GIB, [GIB + SCRATCH], 0, (0,), ""),
    ("auto", "flat", GIB, [GIB + SCRATCH - 1], 0, (), "in RAM: it takes 2.5 GiB"),
    ("auto", CLUSTERS, 4 * GIB, [5 * GIB, 5 * GIB], 0, (), "in RAM: it takes 6.5 GiB"),
    ("auto", GRAPH, 1, [GIB], 0, (), ""),
    ("auto", "flat", 1, [], 0, (), ""),
    ("cpu", "flat", 1, [9 * GIB], 0, (), ""),
    ("all", CLUSTERS, 4 * GIB, [5 * GIB, 4 * GIB], 0, (0, 1), "it takes 4.0 GiB on each of 2 GPUs"),
    ("cuda", COMPRESSED, GIB, [GIB, 9 * GIB], 1, (1,), "on GPU 1"),
]


@pytest.mark.parametrize(("device", "kind", "size", "free", "rank", "gpus", "words"), PLACES)
def test_an_index_goes_to_a_gpu_that_it_fits(device, kind, size, free, rank, gpus, words) -> None:
    chosen, why = place(device, kind, size, len(free), free.__getitem__, rank)
    assert chosen == gpus
    assert bool(why) == bool(free and kind != GRAPH and device != "cpu")
    assert re.search(words, why)
