"""CFS at several thresholds on the corpus worked out by hand."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.cfs_thresholds import cfs_thresholds
from common.records import Ranked
from harness.retrievers.bm25 import Bm25Retriever
from harness.strategies.drrag import DrRag
from tests.helpers.river_corpus import PASSAGES, gold_scorer, write_index, write_questions


def test_a_threshold_that_accepts_every_pair_makes_cfs_qdc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strategy = DrRag(Bm25Retriever(write_index(tmp_path)), scorer=gold_scorer())  # 0.9 for gold pairs, 0.1 for others
    text = cfs_thresholds(strategy, str(write_questions(tmp_path)), ks=(2,), thresholds=(0.05, 0.95))
    assert capsys.readouterr().out == text + "\n"
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in
            (line.split("|") for line in text.splitlines() if line.startswith("| "))}  # fmt: skip
    assert rows["SM"][0] == "66.7"
    assert rows["CFS, 0.05"] == [*rows["QDC"][:2], "0"]
    assert rows["CFS, 0.50"] == rows["CFS, perfect classifier"]
    assert rows["CFS, 0.50"][0] == "100.0"
    assert rows["CFS, 0.95"][1] == "1.00"  # no second document is taken
    assert rows["0.05"] == ["100.0", "100.0"]
    assert rows["0.50"] == ["100.0", "0.0"]
    assert "AUROC of the classifier 1.000" in text


class Dorn:
    """A retriever that always finds one document, the second one of q2."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        return [[Ranked(PASSAGES["Dorn"], 1.0)] for _ in queries]


def test_the_second_stage_is_that_of_the_system(tmp_path: Path) -> None:
    retriever = Bm25Retriever(write_index(tmp_path))
    strategy = DrRag(retriever, scorer=gold_scorer(), second_retriever=Dorn())
    text = cfs_thresholds(strategy, str(write_questions(tmp_path)), ks=(2,), thresholds=(0.05,))
    documents = {cells[1].strip(): cells[3].strip() for cells in
                 (line.split("|") for line in text.splitlines() if line.startswith("| "))}  # fmt: skip
    assert documents["QDC"] == documents["CFS, 0.05"] == "2.00"
    assert documents["CFS, 0.50"] == documents["CFS, perfect classifier"] == "1.33"  # Dorn for q2 alone
