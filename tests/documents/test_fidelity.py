"""Text lost and invented by a conversion: hand-worked shares, what must not count, bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.fidelity import Fidelity, fidelity, words


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


def test_line_breaks_hyphens_and_escapes_do_not_count() -> None:
    assert words("well-known") == words("well-\n  known")
    assert words(r"read\_me") == words("read_me")
    assert words("non\u2010breaking") == words("non-breaking")


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
