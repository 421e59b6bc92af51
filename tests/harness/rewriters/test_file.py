"""Rewrites looked up in a file: by question, history and strategy; what is missing falls back and is counted."""

import json
from pathlib import Path

import pytest

from common.files import sha256
from common.records import Question
from harness.interfaces import Rewriter
from harness.rewriters.file import MISSING, FileRewriter

ROWS = [
    {"question": "who  wrote it", "strategy": "gqr", "rewrite": "author of Jaws", "history": ["what is Jaws", ""]},
    {"question": "who wrote it", "strategy": "gqr", "rewrite": "who wrote it; all of it"},
    {"question": "who wrote it", "strategy": "gqr", "rewrite": "author"},
    {"question": "who wrote it", "strategy": "decomposition", "rewrite": "what is it?; who wrote it?; What is it"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_rewrites_by_question_history_and_strategy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewriter = FileRewriter(file)
    assert isinstance(rewriter, Rewriter)
    assert rewriter.strategies == ("gqr", "decomposition")
    asked = [
        Question("1", "who wrote it"),
        Question("2", " who wrote it ", history=("what is  Jaws",)),
        Question("3", "who"),
    ]
    plain, later, unknown = rewriter.rewrite(asked, ["decomposition", "gqr"])
    assert plain.queries == {
        "decomposition": ("what is it?", "who wrote it?"),
        "gqr": ("who wrote it; all of it", "author"),
    }
    assert not plain.fallbacks
    assert later.queries["gqr"] == ("author of Jaws",)
    assert later.fallbacks == {"decomposition": MISSING}
    assert unknown.queries == {"decomposition": ("who",), "gqr": ("who",)}
    assert unknown.costs == {"fallbacks": 2.0}
    assert f"3 of 6 rewrites fell back to the question: {MISSING} (3)" in capsys.readouterr().err
    assert rewriter.recipe == {"sha256": sha256(file)}
    assert rewriter.rewrite([], ["gqr"]) == []


def test_rows_that_are_left_out_are_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text() + json.dumps({**ROWS[0], "rewrite": None}) + "\n")
    FileRewriter(file).load()
    said = f"a row whose field 'rewrite' is null: 1, left out; the first: {file}, line {len(ROWS) + 1}."
    assert said in capsys.readouterr().err
