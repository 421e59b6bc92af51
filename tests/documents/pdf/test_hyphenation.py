"""Words that a line's end cuts."""

import pytest

from documents.pdf.hyphenation import joined, vocabulary

WORDS = vocabulary([
    "a self-contained unit", "the information of the well known", "width and changing parts", "re-enter", "an island",
    "le mot et le reste", "the main machine", "the art",
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("the infor-", "mation is", "the information is"),
        ("the soft\xad", "ware is", "the software is"),
        ("is self-", "contained and", "is self-contained and"),  # as the document writes it
        ("a width-", "changing part", "a width-changing part"),  # both are words of the document
        ("the X-", "Ray tube", "the X-Ray tube"),  # a capital letter follows
        ("the pages 3-", "5 of", "the pages 3-5 of"),
        ("for 3-", "phase motors", "for 3-phase motors"),
        ("for 2-", "and 3-phase", "for 2- and 3-phase"),
        ("the pre-", "and post-war", "the pre- and post-war"),
        ("die Ein-", "und Ausgabe", "die Ein- und Ausgabe"),
        ("on an isl-", "and in it", "on an island in it"),  # a word of the document
        ("avant-", "et après-guerre", "avant- et après-guerre"),  # "et" is a word of the document
        ("the pap-", "en of", "the papen of"),  # and "en" is not
        ("state-of-the-", "art", "state-of-the-art"),
        ("to main-", "tain main parts", "to maintain main parts"),  # "tain" is no word
        ("the machine-", "dependent code", "the machine-dependent code"),
        ("a well-estab-", "lished", "a well-established"),
        ("a range -", "of values", "a range - of values"),
        ("the pump", "moves", "the pump moves"),
    ],
)
def test_hyphens_are_left_out_or_stay(text: str, line: str, expected: str) -> None:
    assert joined(text, line, WORDS) == expected


def test_what_a_line_s_end_may_cut_is_no_word() -> None:
    assert vocabulary(["the infor-", "mation is"]) == {"the", "is"}
