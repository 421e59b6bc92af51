"""Mistakes in the options of `--judge`: one line, before anything is loaded, and no report."""

import json
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.llm.local import CausalLm
from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, refused

STRATEGY = {
    "class_path": "harness.strategies.retrieve_read.RetrieveRead",
    "init_args": {
        "retriever": {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
    },
}


@pytest.fixture
def place(tmp_path: Path, checkpoints: dict[str, Path]) -> Path:
    """A folder with two configs, questions and a model; nothing in it can be loaded."""
    for name in ("first", "last"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"strategy": STRATEGY}))
    (tmp_path / "questions.json").write_text(json.dumps(hotpot_rows(1)))
    (tmp_path / "index").mkdir()
    (tmp_path / "judge").symlink_to(checkpoints["t5"])
    return tmp_path


def evaluate(place: Path, *more: str, systems: Sequence[str] = ("last",), judge: bool = True) -> Ended:
    named = [word for system in systems for word in ("--config", f"{system}.yaml")]
    judged = ["--judge.llm", "harness.llm.local.CausalLm", "--judge.llm.model", "./judge"] if judge else []
    return command(
        place, "infer.py", "evaluate", *named, "--questions", "questions.json", "--out", "refused", *judged, *more
    )


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--judge.passages", "0"), ["passages must be at least 1, got 0"]),
        (("--judge.repairs", "-1"), ["repairs must be at least 0, got -1"]),
        (("--judge.verdicts", "[]"), [
            "verdicts is []; it must name at least one of answers, passages, criteria, ranking"]),
        (("--judge.verdicts", "[answer]"), ["judge.verdicts"]),
        (("--judge.answer_prompt", "judge_answers"), ["prompt is 'judge_answers'; allowed: ", "judge_answer"]),
        (("--judge.answer_prompt", "judge_ranking"), ["prompt judge_ranking", "${answers}", "allowed there: "]),
        (("--judge.answer_prompt", "judge_passage"), ["prompt judge_passage needs a place ${answer}"]),
    ],
)  # fmt: skip
def test_its_options_are_checked_before_anything_is_loaded(
    place: Path, options: tuple[str, str], parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(self: CausalLm, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(CausalLm, "__init__", wraps(CausalLm.__init__)(loads))
    refused(evaluate(place, *options), 2, *parts)
    assert not (place / "refused").exists()


def test_a_judge_without_a_language_model_is_refused(place: Path) -> None:
    refused(evaluate(place, "--judge.passages", "3", judge=False), 2, "judge")


def test_systems_with_different_judges_are_refused(place: Path) -> None:
    config = yaml.safe_load((place / "last.yaml").read_text())
    config["judge"] = {"llm": {"class_path": "harness.llm.local.CausalLm", "init_args": {"model": "./judge"}}}
    (place / "own.yaml").write_text(yaml.safe_dump(config))
    refused(
        evaluate(place, judge=False, systems=("first", "own")), 2, "judge is None for first and", "for own",
        "all systems of a comparison need the same",
    )  # fmt: skip
