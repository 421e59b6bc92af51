"""Numbers that headings begin with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.pdf.numbering import number_of, roman


@pytest.mark.parametrize(
    ("text", "kind", "values", "rest"),
    [
        ("1 Introduction", "arabic", (1,), "Introduction"),
        ("1. Introduction", "arabic", (1,), "Introduction"),
        ("2.3 Power supply", "arabic", (2, 3), "Power supply"),
        ("10.2.11. Details", "arabic", (10, 2, 11), "Details"),
        ("§ 4.1 Scope", "arabic", (4, 1), "Scope"),
        ("Chapter 4 Using it", "arabic", (4,), "Using it"),
        ("CHAPTER ONE SCOPE", "arabic", (1,), "SCOPE"),
        ("Chapter IV: Using it", "arabic", (4,), "Using it"),
        ("Part II. Reference", "part", (2,), "Reference"),
        ("Appendix B. Tables", "letter", (2,), "Tables"),
        ("Appendix C", "letter", (3,), ""),
        ("Appendix A.2 Tables", "letter", (1, 2), "Tables"),
        ("A.1 Licence", "letter", (1, 1), "Licence"),
        ("B. Citations", "letter", (2,), "Citations"),
        ("IV. RESULTS", "roman", (4,), "RESULTS"),
        ("C. Footnotes", "letter", (3,), "Footnotes"),
        ("a) first", "small letter", (1,), "first"),
        ("(b) second", "small letter", (2,), "second"),
    ],
)
def test_numbers_are_told_from_the_text(text: str, kind: str, values: tuple[int, ...], rest: str) -> None:
    number = number_of(text)
    assert number is not None
    assert (number.kind, number.values, text[number.length :]) == (kind, values, rest)


@pytest.mark.parametrize(
    "text", ["Introduction", "1", "2023 was dry", "3.5", "Chapter house", "Partial results", "1,000 volts", "", "x"]
)
def test_other_texts_have_none(text: str) -> None:
    assert number_of(text) is None


def test_a_letter_that_may_be_a_word_is_not_sure() -> None:
    assert not getattr(number_of("A pump moves water"), "sure", True)
    assert getattr(number_of("A. Pumps"), "sure", False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *{"i": 1, "iv": 4, "IX": 9, "xiv": 14, "XL": 40, "xc": 90}.items(),
        *dict.fromkeys(("", "iiii", "vx", "mix")).items(),
    ],
)
def test_roman_numerals(text: str, value: int | None) -> None:
    assert roman(text) == value


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    number = number_of(text)
    assert number is None or 0 < number.length <= len(text)
