"""Approximate indexes: training, an interrupted build that goes on, what does not fit, where they are searched."""

import re
from pathlib import Path

import faiss
import numpy as np
import pytest

from common.errors import UserError
from harness.indexing import faiss_building
from harness.indexing.faiss_building import UNFINISHED, build_approximate, training_rows
from harness.indexing.faiss_devices import GPU_SCRATCH_BYTES, in_parts, place
from harness.indexing.faiss_library import check_memory, check_parameters, held_bytes

GIB = 2**30
RNG = np.random.default_rng(0)
VECTORS_ND = RNG.standard_normal((700, 16), dtype=np.float32)


def parameters(kind: str) -> dict:
    return check_parameters(kind, *VECTORS_ND.shape, 8, 8, 4 if kind == "ivfpq" else None)  # type: ignore[arg-type]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("kind", ["ivf", "ivfpq"])
def test_a_killed_build_goes_on_with_the_vectors_it_has_added(tmp_path: Path, monkeypatch, kind: str) -> None:
    monkeypatch.setattr(faiss_building, "BLOCK", 100)
    build_approximate(VECTORS_ND, parameters(kind), tmp_path / "whole", None)
    monkeypatch.setattr(faiss_building, "_SAVE_EVERY_SECONDS", 0.0)
    real, added = faiss_building._adder, []

    def dies_at_the_fourth(*arguments):
        add = real(*arguments)

        def counted(block_BD: np.ndarray) -> None:
            if len(added) == 3:
                raise Killed
            added.append(len(block_BD))
            add(block_BD)

        return counted

    monkeypatch.setattr(faiss_building, "_adder", dies_at_the_fourth)
    with pytest.raises(Killed):
        build_approximate(VECTORS_ND, parameters(kind), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
    assert faiss.read_index(str(tmp_path / UNFINISHED)).ntotal == 300
    monkeypatch.setattr(faiss_building, "_adder", real)
    with monkeypatch.context() as patched:
        patched.setattr(faiss_building, "_trained", lambda *_: pytest.fail("is trained already"))
        build_approximate(VECTORS_ND, parameters(kind), tmp_path / "out", tmp_path)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    (tmp_path / UNFINISHED).write_bytes(b"torn")
    build_approximate(VECTORS_ND, parameters(kind), tmp_path / "again", tmp_path)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("kind", ["ivf", "ivfpq"])
def test_what_runs_on_gpus_gives_the_same_index_where_an_index_on_the_cpu_takes_its_place(
    tmp_path: Path, monkeypatch, kind: str
) -> None:
    build_approximate(VECTORS_ND, parameters(kind), tmp_path / "cpu")
    moved = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: moved.append(type(index).__name__) or index)
    build_approximate(VECTORS_ND, parameters(kind), tmp_path / "gpu")
    assert moved == ["IndexFlatIP", "IndexFlat"]  # of k-means, and of the assignment
    assert (tmp_path / "gpu").read_bytes() == (tmp_path / "cpu").read_bytes()


@pytest.mark.gpu
def test_an_index_trained_on_gpus_finds_what_one_trained_on_the_cpu_finds(tmp_path: Path, monkeypatch) -> None:
    if faiss.get_num_gpus() == 0:
        pytest.skip("needs a GPU and faiss-gpu: k-means and assignment on GPUs")
    vectors_ND = RNG.standard_normal((20_000, 32), dtype=np.float32)
    queries_QD, shares = vectors_ND[:200] + 0.1, []
    exact = faiss.knn(queries_QD, vectors_ND, 10, faiss.METRIC_INNER_PRODUCT)[1]
    for gpus in (faiss.get_num_gpus(), 0):
        monkeypatch.setattr(faiss, "get_num_gpus", lambda gpus=gpus: gpus)
        build_approximate(vectors_ND, check_parameters("ivf", 20_000, 32, 64, 8), tmp_path / str(gpus))
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


@pytest.mark.parametrize(("dimensions", "default"), [(384, 64), (768, 64), (1024, 64), (100, 50), (127, 1), (48, 48)])
def test_compressed_vectors_have_at_most_64_bytes_by_default(dimensions: int, default: int) -> None:
    assert check_parameters("ivfpq", 10_000, dimensions, None, 32)["pq_bytes"] == default


@pytest.mark.parametrize(
    ("count", "pq_bytes", "message"),
    [
        (1000, 7, "pq_bytes must divide the 24 dimensions of the vectors, got 7: 1, 2, 3, 4, 6, 8, 12, 24"),
        (1000, 0, "pq_bytes must divide"),
        (255, None, "ivfpq needs 256 passages, got 255. Choose flat"),
    ],
)
def test_what_cannot_be_compressed_is_refused(count: int, pq_bytes: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_parameters("ivfpq", count, 24, None, 32, pq_bytes)


def test_what_does_not_fit_the_memory_is_refused_with_its_size_and_what_fits() -> None:
    wikipedia = (21_015_324, 384)
    ivf = check_parameters("ivf", *wikipedia, None, 32)
    with pytest.raises(
        UserError, match=r"ivf takes 30\.2 GiB.* and 16\.0 GiB are free\. Choose ivfpq, which takes 1\.4 GiB, or flat"
    ):
        check_memory(ivf, *wikipedia, 16 * GIB)
    check_memory(ivf, *wikipedia, 31 * GIB)
    check_memory(ivf, *wikipedia, None)
    check_memory(check_parameters("ivfpq", *wikipedia, None, 32), *wikipedia, 2 * GIB)
    check_memory({"faiss_index": "flat"}, *wikipedia, 0)
    with pytest.raises(UserError, match=r"hnsw takes 35\.2 GiB"):
        check_memory(check_parameters("hnsw", *wikipedia, None, 32), *wikipedia, 16 * GIB)


@pytest.mark.parametrize("kind", ["ivf", "ivfpq", "hnsw"])
def test_an_index_takes_about_what_was_said(tmp_path: Path, kind: str) -> None:
    vectors_ND = RNG.standard_normal((2000, 16), dtype=np.float32)
    chosen = check_parameters(kind, 2000, 16, 16, 16, 4 if kind == "ivfpq" else None)  # type: ignore[arg-type]
    build_approximate(vectors_ND, chosen, tmp_path / "out")
    tables = 16 * 256 * 4 if kind == "ivfpq" else 0  # centroids of the parts
    assert held_bytes(chosen, 2000, 16) + tables == pytest.approx((tmp_path / "out").stat().st_size, rel=0.1)


SCRATCH = GPU_SCRATCH_BYTES
PLACES = [  # device, kind, size, free of each GPU, rank; GPUs, words of the line
    ("auto", "flat", GIB, [4 * GIB], 0, (0,), "on GPU 0: it takes 2.5 GiB, and GPU 0 has 4.0 GiB free"),
    ("auto", "flat", GIB, [4 * GIB, 4 * GIB], 3, (1,), "on GPU 1"),
    ("auto", "flat", GIB, [GIB + SCRATCH], 0, (0,), ""),
    ("auto", "flat", GIB, [GIB + SCRATCH - 1], 0, (), "in RAM: it takes 2.5 GiB.* ivfpq makes it smaller"),
    ("auto", "ivf", 4 * GIB, [5 * GIB, 5 * GIB], 0, (), "in RAM: it takes 6.5 GiB.*index device all splits it"),
    ("auto", "hnsw", 1, [GIB], 0, (), ""),
    ("auto", "flat", 1, [], 0, (), ""),
    ("cpu", "flat", 1, [9 * GIB], 0, (), ""),
    ("all", "ivf", 4 * GIB, [5 * GIB, 4 * GIB], 0, (0, 1), "split over 2 GPUs, 4.0 GiB each"),
    ("cuda", "ivfpq", GIB, [GIB, 9 * GIB], 1, (1,), "on GPU 1"),
]


@pytest.mark.parametrize(("device", "kind", "size", "free", "rank", "gpus", "words"), PLACES)
def test_an_index_goes_to_a_gpu_that_it_fits(device, kind, size, free, rank, gpus, words) -> None:
    placed = place(device, kind, size, len(free), free.__getitem__, rank)
    assert placed.gpus == gpus
    assert bool(placed.why) == bool(free and kind != "hnsw" and device != "cpu")
    assert re.search(words, placed.why)


@pytest.mark.parametrize(
    ("device", "kind", "free", "message"),
    [
        (
            "cuda",
            "flat",
            [GIB],
            "index device cuda: it takes 9.5 GiB, and GPU 0 has 1.0 GiB free. Choose cpu; --dense.faiss_index ivfpq",
        ),
        ("cuda", "flat", [6 * GIB, 6 * GIB], "index device all splits it over the GPUs"),
        (
            "all",
            "flat",
            [9 * GIB, GIB],
            "index device all: the index takes 5.5 GiB on each of 2 GPUs, and 1.0 GiB are free",
        ),
        ("cuda", "hnsw", [GIB], "an HNSW index cannot be searched on a GPU"),
        ("all", "flat", [], "this FAISS sees no GPU"),
    ],
)
def test_a_gpu_that_was_asked_for_and_is_too_small_is_refused(device, kind, free, message) -> None:
    with pytest.raises(UserError, match=message):
        place(device, kind, 8 * GIB, len(free), free.__getitem__)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_on_several_devices_are_searched_as_one(parts: int) -> None:
    def on_the_cpu(_: int, part_ND: np.ndarray) -> faiss.IndexFlatIP:
        index = faiss.IndexFlatIP(16)
        index.add(part_ND)
        return index

    index = in_parts(faiss, VECTORS_ND, range(parts), on_the_cpu)
    assert index.ntotal == 700
    expected = faiss.knn(VECTORS_ND[:20], VECTORS_ND, 9, faiss.METRIC_INNER_PRODUCT)[1]
    assert (index.search(VECTORS_ND[:20], 9)[1] == expected).all()
