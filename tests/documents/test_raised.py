"""Raised and lowered text, and marks of notes, in plain text."""

import pytest

from common.words import terms_of
from documents.raised import lowered, note_mark, raised


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ("10", "6", "⁶"), ("10", "-3", "⁻³"), ("10", "\u22123", "⁻³"), ("x", "n+1", "ⁿ⁺¹"), ("", "238", "²³⁸"),
        ("Smith", "2, 3", "², ³"), ("Smith", "2,3", "²,³"), ("2", "n", "ⁿ"), ("e", "x/2", "^(x/2)"),
        ("10", "2.5", "^(2.5)"),
        ("x", "Q", "^Q"), ("x", "2Q", "^2Q"), ("x", " 2\n", "²"), ("a", "", ""), ("e", "x + 1", "ˣ⁺¹"),
        ("5", "th", "th"), ("1", "er", "er"), ("M", "me", "ᵐᵉ"), ("Pump", "TM", "™"), ("Pump", "®", "®"),
        ("320", "*", "*"),
        ("it", "citation needed", " citation needed "),
    ],
)  # fmt: skip
def test_raised_text_keeps_its_place(before: str, text: str, expected: str) -> None:
    assert raised(text, before) == expected


@pytest.mark.parametrize(("text", "expected"), [("2", "₂"), ("max", "ₘₐₓ"), ("eff", "_eff"), ("i,j", "ᵢ,ⱼ"), ("", "")])
def test_lowered_text_keeps_its_place(text: str, expected: str) -> None:
    assert lowered(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("1", " [1]"), ("[12]", " [12]"), ("(a)", " [a]"), (" * ", " [*]"), ("[]", ""), (" ", "")]
)
def test_a_note_s_mark_is_set_apart(text: str, expected: str) -> None:
    assert note_mark(text) == expected


def test_search_finds_formulas_as_people_type_them_and_a_number_with_a_note_s_mark() -> None:
    assert terms_of(f"H{lowered('2')}O") == ["h2o"]
    assert terms_of(f"km{raised('2', 'km')}") == terms_of("km2")
    assert "5th" in terms_of(f"5{raised('th', '5')}")
    assert "320" in terms_of(f"320{note_mark('1')}")
