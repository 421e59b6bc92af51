"""The study of a system whose two stages search with different retrievers."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.records import Ranked
from harness.commands.evaluate import evaluate
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.fusion import FusedRetriever
from harness.strategies.drrag import DrRag
from tests.helpers.reports import cells
from tests.helpers.river_corpus import gold_scorer, write_index, write_questions


class Nothing:
    """A retriever that finds nothing."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        return [[] for _ in queries]


def report(strategy: DrRag, folder: Path, **study: object) -> Path:
    """The report on three questions, with k = 2 and 3."""
    out = folder / "report"
    evaluate(strategy, str(write_questions(folder)), out, study={"ks": (2, 3), **study}, resamples=200)
    return out


def test_the_study_searches_each_stage_with_its_retriever(tmp_path: Path) -> None:
    """Where the second stage finds nothing, CFS and QDC give the first stage's k1 documents."""
    strategy = DrRag(Bm25Retriever(write_index(tmp_path)), scorer=gold_scorer(), second_retriever=Nothing())
    out = report(strategy, tmp_path, rows=["QDC", "CFS"])
    table = {(row, column): value for (name, row, column), value in cells(out).items() if name == "recall, k = 2"}
    assert table["SM", "documents"] == 2
    for row in "QDC", "CFS":
        assert table[row, "documents"] == 1
        assert table[row, "recall %"] == pytest.approx(50, abs=1e-3)


@pytest.mark.parametrize(
    ("first", "second", "deeper"), [(50, 50, []), (3, 50, [4]), (50, 5, [10]), (3, 5, [4, 10]), (3, None, [10])]
)
def test_each_stages_candidates_are_compared_with_its_own_depth(
    tmp_path: Path, first: int, second: int | None, deeper: list[int]
) -> None:
    """CFS at k = 4 searches 4 documents with q and 2k + k1 = 10 with q*_i.

    One retriever of both stages is named once.
    """
    index = write_index(tmp_path)

    def fused(candidates: int) -> FusedRetriever:
        return FusedRetriever([Bm25Retriever(index)] * 2, candidates=candidates)

    strategy = DrRag(fused(first), scorer=gold_scorer(), second_retriever=None if second is None else fused(second))
    out = report(strategy, tmp_path, rows=["QDC"])
    found = re.findall(r"share a search of (\d+) passages", (out / "report.md").read_text())
    assert list(map(int, found)) == deeper
