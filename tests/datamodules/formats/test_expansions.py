"""The file of a beam's expansions: what is written is read, several rounds add up, and a bad line is named."""

from pathlib import Path

import pytest

from common.errors import DataError, MissingInputError
from common.records import Passage
from datamodules.formats.expansions import Expansion, is_expansions, read_expansions, to_row, write_expansions

A, B, C = (Passage.of(title, f"text of {title}") for title in "abc")
FIRST = [Expansion((), (A, B)), Expansion((A,), (B, C))]
SECOND = [Expansion((B, A), (C,)), Expansion((C,), ())]


def test_what_is_written_is_read_and_rounds_add_up(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_expansions(one, [to_row("q1", FIRST), to_row("q2", [])])
    write_expansions(two, [to_row("q1", SECOND)])
    assert read_expansions([str(one), str(two)]) == {"q1": [*FIRST, *SECOND], "q2": []}
    assert is_expansions(one)
    (tmp_path / "three.jsonl").write_text('{"question_id": "q", "passages": []}')
    assert not is_expansions(tmp_path / "three.jsonl")
    assert read_expansions([]) == {}


@pytest.mark.parametrize("line",
    ["no json", '{"question_id": "q"}', '{"question_id": "q", "passages": [], "expansions": [{"chain": ["x"]}]}',
        "[]"])  # fmt: skip
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    write_expansions(file, [to_row("q1", FIRST)])
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(DataError, match=r"file\.jsonl, line 2: invalid row .*infer\.py expand"):
        read_expansions([str(file)])


def test_a_missing_file_says_what_writes_it(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"infer\.py expand --out"):
        read_expansions([str(tmp_path / "none.jsonl")])
