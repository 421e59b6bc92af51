"""Words that a line's end cuts."""

import pytest

from documents.pdf.hyphenation import joined, vocabulary

WORDS = vocabulary(
    ["a self-contained unit", "the information of the well known", "width and changing parts", "re-enter"]
)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("the infor-", "mation is", "the information is"),
        ("the soft\xad", "ware is", "the software is"),
        ("is self-", "contained and", "is self-contained and"),  # as the document writes it
        ("a width-", "changing part", "a width-changing part"),  # both are words of the document
        ("the X-", "Ray tube", "the X-Ray tube"),  # a capital letter follows
        ("the pages 3-", "5 of", "the pages 3- 5 of"),
        ("a range -", "of values", "a range - of values"),
        ("the pump", "moves", "the pump moves"),
    ],
)
def test_hyphens_are_left_out_or_stay(text: str, line: str, expected: str) -> None:
    assert joined(text, line, WORDS) == expected


def test_what_a_line_s_end_may_cut_is_no_word() -> None:
    assert vocabulary(["the infor-", "mation"]) == {"the", "mation"}
