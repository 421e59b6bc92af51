"""Initials: the first letter of a paragraph, as high as two lines or more, or large on its line."""

import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth

from documents.pdf.initials import join_initials
from documents.reading.pdf_reading import parse_pdf
from documents.records import Paragraph
from tests.helpers.pdf_lines import word
from tests.helpers.pdf_pages import pdf, text_page

FIRST, SECOND, THIRD = (
    "time there was a king who lived",
    "and he had three daughters, who",
    "were known in all the land for",
)
Row = tuple[float, float, str, str, float]


def story(initial: str, rest: str, lines: int = 2, size: float = 30, shift: float = 0, before: bool = True) -> str:
    """The first paragraph of a page whose initial stands on the last of its lines, 14 points apart."""
    letter: list[Row] = [(40, 100 + 14 * (lines - 1), initial, "Times-Roman", size)]
    left = 40 + size * (0.9 if len(initial) == 1 else 1.2)
    rows: list[Row] = [(left + shift, 100, f"{rest} {FIRST}", "Times-Roman", 11)]
    rows += [(left, 100 + 14 * (at + 1), (SECOND, THIRD)[at], "Times-Roman", 11) for at in range(lines - 1)]
    more = "The king went out to the wood each day and so on"
    rows += [(40, 100 + 14 * (lines + at), more, "Times-Roman", 11) for at in range(3)]
    found = parse_pdf(pdf(text_page([*letter, *rows] if before else [*rows, *letter])), "x.pdf").blocks[0]
    assert isinstance(found, Paragraph)
    return found.text


@pytest.mark.parametrize("before", [True, False])  # whether it is drawn before or after the text
@pytest.mark.parametrize(
    ("initial", "rest", "lines", "size", "shift", "expected"),
    [
        ("O", "nce upon a", 2, 30, 0, "Once upon a"),
        ("O", "nce upon a", 3, 50, 0, "Once upon a"),
        ("O", "NCE UPON a", 2, 24, 0, "ONCE UPON a"),
        ("\u201cO", "nce upon a", 2, 30, 0, "\u201cOnce upon a"),
        ("A", "long", 2, 30, 4, "A long"),  # the first line begins further right
        ("A", "king", 2, 30, 0, "A king"),  # a word of the page
        ("A", "t this", 2, 30, 0, "At this"),
    ],
)  # fmt: skip
def test_an_initial_joins_its_line(
    initial: str, rest: str, lines: int, size: float, shift: float, expected: str, before: bool
) -> None:
    text = story(initial, rest, lines, size, shift, before)
    assert text.startswith(" ".join([expected, FIRST, SECOND, THIRD][: lines + 1]))
    assert "went out to the wood" in text  # which ends neither the paragraph nor its line


@pytest.mark.parametrize(
    ("initial", "rest", "gap", "size", "expected"),
    [
        ("O", "nce upon a", 2, 30, "Once upon a"),
        ("W", "hen upon a", 5, 24, "When upon a"),
        ("A", "king upon a", 5, 30, "A king upon a"),  # a word of the page
        ("O", "nce upon a", 12, 30, "O nce upon a"),  # too far
    ],
)  # fmt: skip
def test_an_initial_that_stands_on_its_line_begins_it(
    initial: str, rest: str, gap: float, size: float, expected: str
) -> None:
    left = 40 + stringWidth(initial, "Times-Roman", size) + gap
    rows = [(40, 100, initial, "Times-Roman", size), (left, 100, f"{rest} {FIRST}", "Times-Roman", 11)]
    rows += [(40, 114 + 14 * at, f"{SECOND} the king {THIRD}", "Times-Roman", 11) for at in range(3)]
    found = parse_pdf(pdf(text_page(rows)), "x.pdf").blocks[0]
    assert isinstance(found, Paragraph)
    assert found.text.startswith(f"{expected} {FIRST} {SECOND}")


def test_a_large_letter_with_raised_text_is_no_initial() -> None:
    words = [word("X", 50, 100, 24), word("max", 64, 90), word("is", 84, 100, 12), word("large", 100, 100, 12)]
    assert join_initials(words) == words
