"""`infer.py evaluate --validation_split`: only the questions that a training holds out."""

import json
from pathlib import Path

import pytest

from datamodules.cache.splits import split_questions
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.reading import read_passages
from harness.retrievers.bm25 import build_bm25
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, refused

ROWS = 24


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("validation_split")
    (folder / "train.json").write_text(json.dumps(hotpot_rows(ROWS)))
    build_bm25(read_passages("hotpotqa", [str(folder / "train.json")]), folder / "index")
    return folder


def measure(folder: Path, *more: str) -> Ended:
    return command(
        folder, "infer.py", "evaluate", "--system", "harness.systems.retrieve_read.RetrieveRead",
        "--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "index",
        "--questions", "train.json", "--resamples", "20", "--out", "report", *more,
    )  # fmt: skip


def asked(folder: Path) -> list[str]:
    rows = (folder / "report" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["id"] for row in rows]


def test_asks_what_a_training_holds_out(place: Path) -> None:
    split = split_questions([QuestionDataFile(str(place / "train.json"), "hotpotqa")], [], 0.4)
    kept, validation_split = split.training, split.held_out
    assert min(len(validation_split), len(kept)) >= 3
    ended = measure(place, "--validation_split", "0.4")
    assert ended.code == 0, ended.err
    assert asked(place) == [question.id for question in validation_split]
    assert "of which training holds out the share 0.4" in (place / "report" / "report.md").read_text(encoding="utf-8")

    assert measure(place, "--validation_split", "0.4", "--limit", "2").code == 0
    assert asked(place) == [question.id for question in validation_split][:2]


@pytest.mark.parametrize(
    ("share", "message"), [("1.5", "validation_split: Not of type"), ("0.000001", "holds out none")]
)
def test_refuses_what_leaves_no_question(place: Path, share: str, message: str) -> None:
    refused(measure(place, "--validation_split", share, "--out", "refused"), 2, message)
    assert not (place / "refused").exists()
