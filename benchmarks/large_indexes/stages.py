"""The stages of the benchmark, each in a process of its own: `python -m benchmarks.large_indexes.stages NAME FOLDER OPTIONS`, OPTIONS as JSON."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "corpus": corpus, "bm25_build": bm25_build, "bm25_search": bm25_search,
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(STAGES[sys.argv[1]](Path(sys.argv[2]), **json.loads(sys.argv[3]))))
