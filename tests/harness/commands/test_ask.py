"""`infer.py ask` with the real BM25 index of a corpus worked out by hand.

One question, a file, lines of input, a terminal.
"""

import io
import json
import os
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

import infer
from common.errors import SomeFailedError, exit_code
from tests.helpers.commands import Ended, command, done, refused
from tests.helpers.river_corpus import QUESTIONS, write_index, write_questions

PLAIN = ("--system", "harness.systems.retrieve_read.RetrieveRead", "--system.k", "2")
BM25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "bm25")
FIRST = {"alba river": "Alba", "calder river": "Calder", "elbe fulda mountain": "Elbe"}  # the best passage of each
FILE = ("--questions", "questions.json")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    write_index(folder)
    write_questions(folder)
    return folder


def ask(place: Path, *options: str, system: tuple[str, ...] = (*PLAIN, *BM25)) -> Ended:
    return done(place, "infer.py", "ask", *system, *options)


def records(ended: Ended) -> list[dict]:
    return [json.loads(line) for line in ended.out.splitlines()]


def test_one_question_as_text_and_as_json(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ask(place, "--question", "  alba\nriver ").out.splitlines()
    assert {"Question: alba river", "1. Alba", "   alba river joins brune"} <= {*lines}
    ended = ask(place, "--question", "alba river", "--json")
    record = json.loads(ended.out)
    assert ended.out.startswith("{\n  ")  # indented
    assert (record["question"], record["question_id"]) == ("alba river", "asked")
    assert [hit["passage"]["title"] for hit in record["evidence"]] == ["Alba", "Alba (ship)"]
    assert record["costs"]["retriever_calls"] == 1
    monkeypatch.setenv("COLUMNS", "24")
    question = ("--question", "alba river joins brune ends ocean")
    assert max(map(len, ask(place, *question).out.splitlines())) <= 24
    assert "   alba river joins ..." in ask(place, *question, "--characters", "21", "--width", "60").out.splitlines()


def test_a_file_of_more_questions_than_are_answered_together(place: Path, tmp_path: Path) -> None:
    assert ask(place, *FILE, "--limit", "2", "--json", "false").out.count("Question: ") == 2
    many = [(f"q{number}", *QUESTIONS[number % 3][1:]) for number in range(35)]
    found = records(ask(place, "--questions", str(write_questions(tmp_path, many)), "--json"))
    assert [record["question_id"] for record in found] == [each[0] for each in many]
    assert [record["evidence"][0]["passage"]["title"] for record in found] == [FIRST[each[1]] for each in many]
    found = records(ask(place, *FILE, "--json", system=PLAIN))  # shipped passages are enough, in file order
    assert [record["evidence"][0]["passage"]["title"] for record in found] == ["Alba", "Alba", "Alba"]


def test_lines_of_standard_input_of_which_one_that_is_no_text_fails_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["\ufeffalba  river".encode(), b"", b"  ", b"cald\xe9r river", b"elbe fulda mountain " * 2000]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines)), encoding="ascii"))
    ended = command(place, "infer.py", "ask", *PLAIN, *BM25, "--json")
    refused(ended, SomeFailedError.exit_code, "1 of 3 questions failed: 4: question 4 is not UTF-8 text")
    found = records(ended)
    assert [each["question_id"] for each in found] == ["1", "4", "5"]  # the numbers of the lines
    assert [len(each["evidence"]) for each in found] == [2, 0, 2]
    assert found[0]["question"] == "alba river"
    assert "Question (" not in ended.err  # no prompt
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
    refused(command(place, "infer.py", "ask", *PLAIN, *BM25), 3, "question 1 is not UTF-8 text")


@pytest.mark.parametrize(
    ("encoding", "asked"), [("cp1252", "alba ?? river é"), ("ascii", "alba ?? river ?"), ("utf-8", "alba 北京 river é")]
)
def test_output_that_is_not_utf_8_replaces_characters(
    place: Path, encoding: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    given = ["ask", *PLAIN, *BM25, "--question", "alba 北京 river é"]
    printed = []
    for options in ([], ["--json"]):
        out = io.BytesIO()
        with redirect_stdout(io.TextIOWrapper(out, encoding=encoding)) as stream:
            assert exit_code("infer.py", partial(infer.main, [*given, *options])) == 0
            stream.flush()
        printed.append(out.getvalue().decode(encoding))
    assert printed[0].splitlines()[0] == f"Question: {asked}"
    assert json.loads(printed[1])["question"] == "alba 北京 river é"  # JSON escapes instead


@pytest.mark.parametrize("end", ["\n", "\x04"], ids=["empty line", "Ctrl-D"])
def test_questions_at_a_terminal_until_an_empty_line_or_ctrl_d(
    place: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = os.openpty()
    os.write(master, f"alba river\ncalder river\n{end}never asked\n".encode())
    with os.fdopen(slave, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        ended = ask(place)
    os.close(master)
    asked = [line for line in ended.out.splitlines() if line.startswith("Question")]
    assert asked == ["Question: alba river", "Question: calder river"]
    assert ended.err.count("Question (an empty line or Ctrl-D ends): ") == 3
    assert ended.err.count("memory-mapped") == 1  # the index is opened once
