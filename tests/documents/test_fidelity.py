"""Text lost and invented by a conversion: hand-worked shares, what must not count, bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.fidelity import Fidelity, fidelity, torn, words


def test_shares_count_repetitions_of_words() -> None:
    assert fidelity("the cat and the dog", "the cat and a bird sat") == Fidelity(lost=2 / 5, invented=3 / 6)


def test_nothing_is_lost_or_invented_between_equal_texts_of_any_order_and_markup() -> None:
    assert fidelity("Rated power: 300 W\n(peak)", "| Rated power | **300 W** (peak) |\n") == (0, 0)
    assert fidelity("one two three", "three one two") == (0, 0)


def test_words_in_a_row_count_text_that_was_mixed() -> None:
    # Runs of the source: ab bc cd; of the result: ab bd dc; common: ab
    lost, invented = fidelity("a b c d", "a b d c", in_a_row=2)
    assert (lost, invented) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert fidelity("a", "a", in_a_row=5) == (0, 0)


@pytest.mark.parametrize(
    ("source", "result", "share"),
    [
        ("a b c d e", "a b c d e", 0),
        ("a b c d e", "A, b c\n\n| d | **e** |", 0),
        ("a b c d e", "a b d e", 0),  # c was lost, with its two pairs
        ("a b c d e", "a b x c d e", 1 / 4),  # bc
        ("a b c d e", "d e a b c", 1 / 4),  # cd
        ("a b c d e", "a c e b d", 1),
        ("the a the b the c", "the b the c", 0),  # "the" and "a" were lost
        ("a b a b", "a b b a", 1 / 3),  # one of two ab
        ("a b c d e", "", 0),
        ("", "a b", 0),
        ("a", "a", 0),
    ],
)
def test_torn_is_what_lost_its_order_and_not_its_words(source: str, result: str, share: float) -> None:
    assert torn(source, result) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a con-\nfiguration", ["a", "configuration"]),
        ("e\ufb03cient", ["efficient"]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("2019-2021", ["2019", "2021"]),  # numbers keep their hyphens apart
        ("-5 V", ["5", "v"]),
        ("電圧は5V", ["電", "圧", "は", "5v"]),  # of scripts without blanks
    ],
)
def test_line_breaks_ligatures_and_escapes_do_not_count(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert words("well-known") == words("well-\n  known")
    assert words(r"read\_me") == words("read_me")
    assert words("non\u2010breaking") == words("non-breaking")


@pytest.mark.parametrize(("source", "result", "shares"), [("", "", (0, 0)), ("a b", "", (1, 0)), ("", "a b", (0, 1))])
def test_empty_texts(source: str, result: str, shares: tuple[float, float]) -> None:
    assert fidelity(source, result) == shares


def test_no_words_in_a_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        fidelity("a", "a", in_a_row=0)


@given(st.text(), st.text(), st.integers(1, 4))
def test_shares_are_bounded_and_change_places_with_the_texts(source: str, result: str, in_a_row: int) -> None:
    lost, invented = fidelity(source, result, in_a_row)
    assert 0 <= lost <= 1
    assert 0 <= invented <= 1
    assert fidelity(result, source, in_a_row) == (invented, lost)
    assert fidelity(source, source, in_a_row) == (0, 0)
