"""Files of rewrites: every layout becomes examples, and one clear line says what is wrong with a file."""

import gzip
import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import Question
from common.rewrites import RewriteExample
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import RowCounts
from harness.evaluation.serialization import digest

CANARD = {
    "History": ["Frank Zappa", "Disbandment", "What group disbanded?", "Zappa and the Mothers"],
    "QuAC_dialog_id": "C_2d_0", "Question": "When did  they disband?", "Question_no": 2,
    "Rewrite": "When did Zappa and the Mothers disband?",
}  # fmt: skip
QRECC = {
    "conversation": "Q: where did they live? A: In Q: Baltimore.\nQ: what for? A: Art.",
    "question": "were they married?",
    "label": "were the cone sisters married?",
}
OURS = {"question": "who was it lol", "strategy": "cce", "rewrite": "who"}


def written(folder: Path, text: str, name: str = "file.json") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def pair(folder: Path, source: str, target: str) -> str:
    written(folder, target, "train.target")
    return written(folder, source, "train.source")


def test_canard(tmp_path: Path) -> None:
    (example,) = read_rewrites("canard", written(tmp_path, json.dumps([CANARD])))
    assert example == RewriteExample(
        "When did they disband?", "gqr", CANARD["Rewrite"], tuple(CANARD["History"])
    )  # fmt: skip


def test_qrecc_splits_the_dialogue_into_turns(tmp_path: Path) -> None:
    first = QRECC | {"conversation": ""}
    opening, later = read_rewrites("qrecc", written(tmp_path, json.dumps([first, QRECC])))
    assert opening.history == ()
    assert later.history == ("where did they live?", "In Q: Baltimore.", "what for?", "Art.")
    assert (later.question, later.rewrite, later.strategy) == (QRECC["question"], QRECC["label"], "gqr")


def test_our_rows_name_their_strategy_and_may_have_a_history(tmp_path: Path) -> None:
    rows = [OURS, OURS | {"strategy": "kwr", "history": ["a turn", " ", "b"]}]
    one, two = read_rewrites("rewrites", written(tmp_path, "\n".join(map(json.dumps, rows)) + "\n"))
    assert (one.strategy, one.history) == ("cce", ())
    assert (two.strategy, two.history) == ("kwr", ("a turn", "b"))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rewrite_retrieve_read_pairs_two_files_line_by_line(tmp_path: Path, suffix: str) -> None:
    for name, text in (("source", "Which\u2028one?\r\nWho?\n"), ("target", "a year; b year\nwho")):
        data = gzip.compress(text.encode()) if suffix else text.encode()
        (tmp_path / f"train.{name}{suffix}").write_bytes(data)
    found = list(read_rewrites("rrr", str(tmp_path / f"train.source{suffix}")))
    assert [(e.question, e.rewrite, e.strategy) for e in found] == [
        ("Which one?", "a year; b year", "decomposition"),  # U+2028 is no line break
        ("Who?", "who", "decomposition"),
    ]
    (as_gqr,) = read_rewrites("rrr", str(tmp_path / f"train.source{suffix}"), "gqr", limit=1)
    assert (as_gqr.strategy, as_gqr.rewrite) == ("gqr", "a year; b year")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\nb\n", "x\n", r"train.source, line 2: .*train.source has this line, .*train.target ends before it"),
        ("a\n", "x\ny\n", r"train.source, line 2: .*train.target has this line, .*train.source ends before it"),
        (" \n", "x\n", r"train.source: every row is left out, as line 1: field 'source' is empty\."),
        ("", "", r"train.source is empty"),
    ],
)
def test_a_wrong_pair_of_files_names_file_and_line(tmp_path: Path, source: str, target: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_rewrites("rrr", pair(tmp_path, source, target)))


def test_rows_with_an_empty_field_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [CANARD, CANARD | {"Rewrite": ""}, CANARD | {"Rewrite": None}, CANARD | {"Rewrite": " "}]
    file, counts = written(tmp_path, json.dumps(rows)), RowCounts()
    assert len(list(read_rewrites("canard", file, counts=counts))) == 1
    assert counts.lines() == [
        f"a row whose field 'rewrite' is empty: 2, left out; the first: {file}, row 2 (line 1)",
        f"a row whose field 'rewrite' is null: 1, left out; the first: {file}, row 3 (line 1)",
    ]
    lines = pair(tmp_path, "a\nb\n \n", "x\n\ny\n")
    assert [each.question for each in read_rewrites("rrr", lines)] == ["a"]


def test_a_history_belongs_to_a_question_and_to_its_digest() -> None:
    alone, followed = Question("1", "And then?"), Question("1", "And then?", history=("Who came?", "Ann."))
    assert alone != followed
    assert digest([alone]) != digest([followed])
    assert digest([alone]) != digest([alone.excluding_self()])
