"""Raised and lowered text in plain text: 10⁶, H₂O, e^(x/2), v_(ab/c); and the marks of notes, set apart: $320 [1]."""

import re
from unicodedata import normalize

from documents.normal_form import one_line

_RAISED = {normalize("NFKC", sign): sign for sign in "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"}
_LOWERED = {normalize("NFKC", sign): sign for sign in "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"}
_MINUS = "-\u2013"  # what is typed for \u2212
_WHOLE = {"TM": "\u2122", "SM": "\u2120"}
_LETTERS = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"(?=.*[^\W\d_]{3}).* ")  # words, not a formula
_BRACKETS = re.compile(r"\[(.*)\]|\((.*)\)")


def raised(text: str, before: str = "") -> str:
    """A raised text in its place: as superscripts where Unicode has all of them, else after ^.

    Signs stay as they are (*, ®), and so do the letters of 5th and 1er; a sentence is set apart.

    Args:
        text: The raised text.
        before: The text before it, or its end.
    """
    text = one_line(text)
    if text in _WHOLE or (before[-1:].isdecimal() and len(text) > 1 and _LETTERS.fullmatch(text)):
        return _WHOLE.get(text, text)
    return _moved(text, _RAISED, "^")


def lowered(text: str) -> str:
    """A lowered text in its place: as subscripts where Unicode has all of them, else after _."""
    return _moved(one_line(text), _LOWERED, "_")


def note_mark(text: str) -> str:
    """The mark of a note behind a word, a blank before it: " [1]"."""
    text = one_line(text)
    inner = _BRACKETS.fullmatch(text)
    text = (inner[1] or inner[2] or "").strip() if inner else text
    return f" [{text}]" if text else ""


def in_line(script: str, text: str, before: str) -> str:
    """A text in its line: "sup", "sub", "over" (under a stroke), "note" (it calls one), else as it is; see `raised`."""
    match script:
        case "sup":
            return raised(text, before)
        case "sub":
            return lowered(text)
        case "over":
            return f"/{text}"
        case "note":
            return note_mark(text)
    return text


def _moved(text: str, signs: dict[str, str], sign: str) -> str:
    if _SENTENCE.match(text):
        return f" {text} "
    text = text if "," in text else text.replace(" ", "")
    moved = [signs.get("\u2212" if each in _MINUS else each, each) for each in text]
    if all(new != old or not (old.isalnum() or old in "/.") for new, old in zip(moved, text, strict=True)):
        return "".join(moved)
    return f"{sign}{text}" if text.isalnum() else f"{sign}({text})"
