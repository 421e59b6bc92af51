"""metrics.jsonl: which lines are kept on resume, values that are no numbers, incomplete lines."""

import json
from pathlib import Path

import pytest
import torch

from common.errors import ArtifactError
from trainers.run.loggers import JsonlLogger


def logged(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def logger(tmp_path) -> JsonlLogger:
    """A file with four optimizer steps and a validation after the second."""
    logger = JsonlLogger(tmp_path / "run")
    for step in range(4):
        logger.log_metrics({"train/loss": 1.0 - step / 10}, step)
        if step == 1:
            logger.log_metrics({"val/em": 50.0}, step)
    return logger


def test_a_cut_keeps_what_was_logged_before_the_checkpoint_without_an_incomplete_last_line(logger, tmp_path) -> None:
    before, inode = logger.path.read_bytes(), logger.path.stat().st_ino
    logger.cut(4)
    assert logger.path.read_bytes() == before
    assert logger.path.stat().st_ino == inode  # nothing was written
    with logger.path.open("ab") as file:
        file.write(b'{"step": 1, "train/lo\xc3')
    JsonlLogger(logger.folder).cut(2)  # the checkpoint of global step 2 was saved after the steps 0 and 1
    assert [row["step"] for row in logged(logger.folder)] == [0, 1, 1]
    assert logged(logger.folder)[-1] == {"step": 1, "val/em": 50.0}  # the validation of step 1
    logger.log_metrics({"train/loss": 0.5}, 2)
    assert [row["step"] for row in logged(logger.folder)] == [0, 1, 1, 2]
    logger.cut(0)
    assert logger.path.read_bytes() == b""
    JsonlLogger(tmp_path / "new").cut(3)
    assert not (tmp_path / "new").exists()


def test_a_line_that_is_no_metrics_is_named(logger) -> None:
    logger.finalize("stopped")
    logger.path.write_text('{"step": 0}\nsomething else\n{"step": 1}\n')
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl:2: not a line of metrics"):
        logger.cut(1)
    assert logger.path.read_text().count("\n") == 3


def test_values_that_are_no_numbers_are_null(tmp_path) -> None:
    logger = JsonlLogger(tmp_path)
    logger.log_metrics({"a": float("nan"), "b": torch.tensor(float("inf")), "c": -float("inf"), "d": 1}, 0)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=refuse) == {"step": 0, "a": None, "b": None, "c": None, "d": 1.0}
