"""Texts of words from their characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.pdf.word_text import word_text


def side_by_side(text: str) -> list[tuple[str, float, float]]:
    return [(letter, 6.0 * at, 6.0 * at + 5) for at, letter in enumerate(text)]


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("plain", "plain"),
        ("e\ufb03cient", "efficient"),
        ("\ufb02ow", "flow"),
        ("x\u00b2", "x\u00b2"),  # not a ligature: stays
        ("soft\xad", "soft\xad"),
        ("so\xadft", "soft"),
        ("zero\u200bwidth", "zerowidth"),
        ("\uf0b7", "\u2022"),
        ("\x00\x01a\uffff", "a"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_characters_that_are_not_what_they_say(drawn: str, text: str) -> None:
    assert word_text(side_by_side(drawn)) == text


def test_an_accent_above_a_letter_is_composed() -> None:
    assert word_text([("M", 0, 8), ("\u00a8", 9.5, 12), ("u", 9, 13), ("l", 14, 15)]) == "M\u00fcl"


def test_an_accent_beside_a_letter_stays() -> None:
    assert word_text([("x", 0, 5), ("^", 6, 10), ("e", 11, 15)]) == "x^e"


@given(st.lists(st.tuples(st.characters(), st.floats(0, 600), st.floats(0, 600))))
def test_any_characters_give_valid_text(letters: list[tuple[str, float, float]]) -> None:
    word_text(letters).encode()
