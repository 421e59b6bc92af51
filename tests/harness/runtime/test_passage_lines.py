"""Passages of documents on the terminal: what is cited, tables that stay tables, images that can be opened."""

from dataclasses import replace

import pytest

from common.records import Passage
from documents.records import Segment, as_passage
from harness.runtime.answer_text import passage_lines

TABLE = "Table 1: Ratings\n\n| model | supply voltage |\n| --- | --- |\n| A1 | 24 V |\n| A\\|2 | 48 V |"
SEGMENT = Segment("a1.pdf", "Alba A1", ("Ratings",), "table", TABLE, "Table 1: Ratings\nmodel supply voltage", 7, 7)


def shown(passage: Passage, width: int = 60, characters: int | None = None) -> list[str]:
    return list(passage_lines("12.", passage, ["score 1.5"], width, characters))


AS_IT_IS = ["| model | supply voltage |", "| --- | --- |", "| A1 | 24 V |", "| A\\|2 | 48 V |"]


@pytest.mark.parametrize(
    ("options", "table"),
    [({}, AS_IT_IS), ({"width": 20}, AS_IT_IS), ({"characters": 69}, [*AS_IT_IS[:2], "| A1 | ..."])],
)
def test_the_rows_of_a_table_stay_whole(options: dict[str, int], table: list[str]) -> None:
    lines = shown(as_passage(SEGMENT, SEGMENT.path), **options)
    assert lines[-1 - len(table) :] == [*(f"    {line}" for line in table), ""]
    assert options or lines[:3] == ["12. Alba A1 [a1.pdf, page 7: Ratings]", "    (score 1.5)", "    Table 1: Ratings"]


def test_lists_and_code_keep_their_lines_and_long_ones_are_wrapped() -> None:
    text = "Do this:\n\n- switch the pump off and wait until it stands still\n    indented code"
    lines = shown(as_passage(replace(SEGMENT, kind="text", text=text, embedded=text), SEGMENT.path), width=40)
    assert lines[2:-1] == [
        "    Do this:", "    - switch the pump off and wait until", "    it stands still", "        indented code",
    ]  # fmt: skip


def test_an_image_is_named_by_its_file() -> None:
    passage = as_passage(replace(SEGMENT, kind="image", text="Figure 2: Wiring", image="0a1b.png"), SEGMENT.path)
    assert passage.metadata is not None
    passage.metadata["image"] = "indexes/a name with blanks/images/0a1b.png"
    assert "    Image: indexes/a name with blanks/images/0a1b.png" in shown(passage, width=30)


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = "| a\x1b[2J | b |\n| c | d |"
    segment = replace(SEGMENT, document="\x1b[2J.pdf", text=text, embedded="")
    printed = "\n".join(shown(as_passage(segment, ("\x07",))))
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "[\\x1b[2J.pdf, page 7: Ratings]" in printed


def test_passages_of_other_corpora_are_shown_as_before() -> None:
    passage = Passage.of("Alba", "A river.", "", "doc-3", {"image": "a.png"})
    assert shown(passage) == ["12. [doc-3] Alba", "    (score 1.5)", "    A river.", '    {"image": "a.png"}', ""]
