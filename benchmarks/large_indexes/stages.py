"""The stages of the benchmark, each in a process of its own.

`python -m benchmarks.large_indexes.stages NAME FOLDER OPTIONS`, OPTIONS as JSON.
"""

import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_indexes.passages import passages, queries


def corpus(folder: Path, count: int, asked: int) -> dict[str, Any]:
    """Write the generated passages as a jsonl file, and questions."""
    (folder / "queries.json").write_text(json.dumps(queries(asked)))
    file = folder / "corpus.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for passage in passages(count):
            lines.write(json.dumps({"title": passage.title, "text": passage.text}) + "\n")
    return {"bytes": file.stat().st_size}


def bm25_build(folder: Path, workers: int) -> dict[str, Any]:
    """Build a BM25 index of them, as `infer.py index --kind bm25` does."""
    from datamodules.formats.reading import read_passages
    from harness.retrievers.bm25 import build_bm25

    build_bm25(read_passages("jsonl", [str(folder / "corpus.jsonl")]), folder / "bm25", workers=workers, overwrite=True)
    return {
        "bytes": _bytes(folder / "bm25"),
        **{name: _bytes(folder / "bm25" / name) for name in ("passages.jsonl", "bm25")},
    }


def bm25_search(folder: Path, workers: int, k: int, verify: str) -> dict[str, Any]:
    """Open the index and search a batch of queries, twice: the second time its pages are in memory."""
    from harness.retrievers.bm25 import Bm25Retriever

    started = time.perf_counter()
    retriever = Bm25Retriever(folder / "bm25", verify=verify, workers=workers)  # type: ignore[arg-type]
    opened = time.perf_counter() - started
    texts = json.loads((folder / "queries.json").read_text())
    first = _seconds(lambda: retriever.search(texts, k))
    return {"opened": opened, "first": first, "again": _seconds(lambda: retriever.search(texts, k))}


class RandomVectors:
    """Stands for a sentence encoder where encoding would take days.

    Unit vectors around 4,096 random centres, by the number of the text.

    It builds an index as an encoder does; what it finds says nothing about retrieval.
    """

    name, recipe, dtype, precision, device, size_bytes = "random", {"random": True}, "float32", "fp32", "cpu", 0

    def __init__(self, dimensions: int) -> None:
        self.dimensions, self._drawn = dimensions, 0
        self._centres = np.random.default_rng(0).standard_normal((4096, dimensions), dtype=np.float32)

    def encode_passages(self, texts: list[str]) -> np.ndarray:
        """A vector for each text, float32 (N, D)."""
        rng = np.random.default_rng(zlib.crc32(texts[0].encode()))
        vectors_ND = self._centres[rng.integers(0, len(self._centres), len(texts))]
        vectors_ND += 0.7 * rng.standard_normal(vectors_ND.shape, dtype=np.float32)
        return vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True)


def dense_build(folder: Path, faiss_index: str, dimensions: int, nlist: int | None) -> dict[str, Any]:
    """Build a dense index of random vectors, as `infer.py index --kind dense` does."""
    from datamodules.formats.reading import read_passages
    from harness.retrievers.dense import build_dense

    passages_read = read_passages("jsonl", [str(folder / "corpus.jsonl")])
    out, encoder = folder / faiss_index, RandomVectors(dimensions)
    build_dense(passages_read, out, encoder, faiss_index=faiss_index, nlist=nlist, overwrite=True)  # type: ignore[arg-type]
    return {"bytes": _bytes(out), **{file.name: file.stat().st_size for file in out.glob("vectors.*")}}


def dense_search(
    folder: Path, faiss_index: str, k: int, asked: int, verify: str, nprobe: int, exact: str | None
) -> dict[str, Any]:
    """Open the index and search a batch of vectors near stored ones, twice.

    With the recall of what the index `exact` finds.
    """
    from harness.indexing.index_folder import open_index
    from harness.indexing.vector_search import Vectors

    started = time.perf_counter()
    index = open_index(folder / faiss_index, "dense", verify)  # type: ignore[arg-type]
    vectors = Vectors(index.folder, index.recipe["vectors"], "cpu", nprobe)
    opened = time.perf_counter() - started
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(index.passages, asked, replace=False))
    queries_QD = vectors.vectors_ND[rows] + 0.02 * rng.standard_normal(
        (asked, vectors.vectors_ND.shape[1]), dtype=np.float32
    )
    first = _seconds(lambda: vectors.search(queries_QD, k))
    again = _seconds(lambda: vectors.search(queries_QD, k))
    found = {"opened": opened, "first": first, "again": again}
    if exact is None:
        return found
    ours = vectors.search(queries_QD[:20], k)
    theirs = Vectors(folder / exact, {"faiss_index": "flat"}, "cpu").search(queries_QD[:20], k)
    shares = [len({n for n, _ in one} & {n for n, _ in other}) / k for one, other in zip(ours, theirs, strict=True)]
    return {**found, "recall": float(np.mean(shares))}


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "corpus": corpus, "bm25_build": bm25_build, "bm25_search": bm25_search,
    "dense_build": dense_build, "dense_search": dense_search,
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(STAGES[sys.argv[1]](Path(sys.argv[2]), **json.loads(sys.argv[3]))))
