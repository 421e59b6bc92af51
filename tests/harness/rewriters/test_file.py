"""Rewrites looked up in a file: by question, history and strategy; what is missing falls back and is counted."""

import json

import pytest

from common.files import sha256
from common.records import Question
from harness.rewriters.file import MISSING, FileRewriter

ROWS = [
    {"question": "who  wrote it", "strategy": "gqr", "rewrite": "author of Jaws", "history": ["what is Jaws", ""]},
    {"question": "who wrote it", "strategy": "gqr", "rewrite": "who wrote it; all of it"},
    {"question": "who wrote it", "strategy": "gqr", "rewrite": "author"},
    {"question": "who wrote it", "strategy": "decomposition", "rewrite": "what is it?; who wrote it?; What is it"},
]


def test_rewrites_by_question_history_and_strategy(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "made.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    rewriter = FileRewriter(file)
    assert rewriter.strategies == ("gqr", "decomposition")
    history = ("what is  Jaws",)
    asked = [Question("1", "who wrote it"), Question("2", " who wrote it ", history=history), Question("3", "who")]
    plain, later, unknown = rewriter.rewrite(asked, ["decomposition", "gqr"])
    asked_apart = ("what is it?", "who wrote it?")
    assert plain.queries == {"decomposition": asked_apart, "gqr": ("who wrote it; all of it", "author")}
    assert not plain.fallbacks
    assert (later.queries["gqr"], later.fallbacks) == (("author of Jaws",), {"decomposition": MISSING})
    assert unknown.queries == {"decomposition": ("who",), "gqr": ("who",)}
    assert unknown.costs == {"fallbacks": 2.0}
    assert f"3 of 6 rewrites fell back to the question: {MISSING} (3)" in capsys.readouterr().err
    assert rewriter.recipe == {"sha256": sha256(file)}
    assert rewriter.rewrite([], ["gqr"]) == []
    file.write_text(file.read_text() + json.dumps({**ROWS[0], "rewrite": None}) + "\n")
    FileRewriter(file).load()
    said = f"a row whose field 'rewrite' is null: 1, left out; the first: {file}, line {len(ROWS) + 1}."
    assert said in capsys.readouterr().err
