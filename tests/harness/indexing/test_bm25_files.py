"""BM25 built in blocks against bm25s, which holds the whole corpus in memory.

Searched in ranges and by workers against all at once.
"""

from pathlib import Path

import bm25s
import numpy as np
import pytest

from common.errors import ArtifactError, UserError
from common.files import digests
from common.records import Passage
from harness.indexing import bm25_files, bm25_search, posting_runs
from harness.indexing.analyser import Analyser
from harness.indexing.bm25_search import BatchSearch, Postings
from harness.indexing.passage_store import indexed_text
from harness.retrievers.bm25 import build_bm25
from tests.helpers.small_world import corpus

PASSAGES = [*corpus(90), Passage.of("", "the"), Passage.of("jetty " * 300, "kiln"), Passage.of("é漢 naïve", "x")]
RNG = np.random.default_rng(0)
QUERIES = [[(int(n), 1.0) for n in RNG.integers(0, 15, size)] for size in (1, 2, 3, 9, 0, 15)]
WEIGHTED = [[(n, float(w)) for n, w in zip(RNG.permutation(15)[:6].tolist(), RNG.random(6), strict=True)] for _ in "ab"]


def whole(folder: Path, passages: list[Passage], k1: float, b: float) -> bm25s.BM25:
    """An index by bm25s, saved."""
    vocabulary: dict[str, int] = {}
    texts = [Analyser()(indexed_text(passage)) for passage in passages]
    numbers = [[vocabulary.setdefault(word, len(vocabulary)) for word in text] for text in texts]
    engine = bm25s.BM25(k1=k1, b=b, method="lucene")
    engine.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
    engine.save(folder, show_progress=False)
    return engine


@pytest.mark.parametrize(
    ("block", "buffer", "piece", "workers", "k1", "b"),
    [(7, 20, 3, 1, 1.5, 0.75), (30, 2**22, 2**18, 1, 0.9, 0.4), (1000, 1, 1, 1, 2.0, 0.0), (20, 50, 40, 2, 1.2, 1.0)],
)
def test_blocks_give_the_bytes_of_bm25s(tmp_path, monkeypatch, block, buffer, piece, workers, k1, b) -> None:
    monkeypatch.setattr(posting_runs, "BLOCK", block)
    monkeypatch.setattr(bm25_files, "_BUFFER", buffer)
    monkeypatch.setattr(bm25_files, "_PIECE", piece)
    build_bm25(PASSAGES, tmp_path / "index", k1=k1, b=b, workers=workers)
    whole(tmp_path / "bm25s", PASSAGES, k1, b)
    assert digests(tmp_path / "index" / "bm25") == digests(tmp_path / "bm25s")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".tmp")] == []


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[bm25s.BM25, Postings]:
    folder = tmp_path_factory.mktemp("bm25s")
    return whole(folder, PASSAGES, 1.5, 0.75), Postings(folder, len(PASSAGES))


@pytest.mark.parametrize("size", [1, 7, 92, 93, 2**18])
def test_ranges_of_passages_find_what_all_passages_find(built, monkeypatch, size) -> None:
    engine, postings = built
    monkeypatch.setattr(bm25_search, "RANGE", size)
    for query in QUERIES + WEIGHTED:
        parts = (engine.get_scores_from_ids([number]) * np.float32(weight) for number, weight in query)
        scores_N = sum(parts, start=np.zeros(len(PASSAGES), dtype=np.float32))
        assert (postings.scores(query) == scores_N).all()
        for k in (1, 5, 200):
            expected = [n for n in np.lexsort((np.arange(len(scores_N)), -scores_N)) if scores_N[n] > 0][:k]
            found, scored = postings.search(query, k)
            assert found.tolist() == expected
            assert scored.tolist() == scores_N[expected].tolist()


def test_workers_find_what_one_process_finds(built, monkeypatch) -> None:
    _, postings = built
    alone = BatchSearch(postings, 1).search(QUERIES + WEIGHTED, 9)
    monkeypatch.setattr(bm25_search, "_WORTH_WORKERS", 0)
    together = BatchSearch(postings, 2)
    assert together.search(QUERIES + WEIGHTED, 9) == alone
    assert together.search(QUERIES[:2], 9) == alone[:2]  # the same processes again
    processes = together._processes
    assert len(processes.running) == 2
    next(iter(processes.running)).kill()
    assert together.search(QUERIES, 9) == alone[: len(QUERIES)]  # by a new one
    processes._command[2] = "no such file"
    for process in processes.running:
        process.kill()
    with pytest.raises(UserError, match=r"ended \(exit code 2\).*workers 1"):
        together.search(QUERIES, 9)
    assert together.search(QUERIES[1:2] * 3, 9) == alone[1:2] * 3  # with new ones


def test_an_index_that_does_not_fit_the_disk_is_not_begun(tmp_path, monkeypatch) -> None:
    from common import files

    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: files.shutil._ntuple_diskusage(2**40, 2**40 - 4096, 4096))
    with pytest.raises(ArtifactError, match=r"it takes 0\.0 GiB, and 0\.0 GiB are free"):
        build_bm25(corpus(600, longest=20), tmp_path / "index")
    assert list(tmp_path.iterdir()) == []
