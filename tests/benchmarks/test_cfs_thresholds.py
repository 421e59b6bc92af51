"""CFS at several thresholds on the corpus worked out by hand."""

from pathlib import Path

import pytest

from benchmarks.cfs_thresholds import cfs_thresholds
from harness.retrievers.bm25 import Bm25Retriever
from harness.strategies.drrag import DrRag
from tests.helpers.river_corpus import gold_scorer, write_index, write_questions


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
