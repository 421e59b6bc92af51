"""Text lost and invented by a conversion: hand-worked shares, what must not count, bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.fidelity import fidelity


@pytest.mark.parametrize(
    ("source", "result", "in_a_row", "shares"),
    [
        ("the cat and the dog", "the cat and a bird sat", 1, (2 / 5, 3 / 6)),  # repetitions count
        ("Rated power: 300 W\n(peak)", "| Rated power | **300 W** (peak) |\n", 1, (0, 0)),
        ("one two three", "three one two", 1, (0, 0)),
        ("a b c d", "a b d c", 2, (2 / 3, 2 / 3)),  # ab bc cd; ab bd dc: what was mixed
        ("a", "a", 5, (0, 0)),
        ("well-known", "well-\n  known", 1, (0, 0)),
        (r"read\_me", "read_me", 1, (0, 0)),
        ("non\u2010breaking", "non-breaking", 1, (0, 0)),
    ],
)
def test_shares_by_hand(source: str, result: str, in_a_row: int, shares: tuple[float, float]) -> None:
    assert fidelity(source, result, in_a_row) == pytest.approx(shares)


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
