"""Initials: the first letter of a paragraph, as high as two lines or more, or large on its line."""

import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth

from documents.pdf.initials import join_initials
from documents.reading.pdf_reading import parse_pdf
from documents.records import Paragraph
from tests.helpers.pdf_lines import word
from tests.helpers.pdf_pages import pdf, text_page

LINES = ("time there was a king who lived", "and he had three daughters, who", "were known in all the land for")
MORE = "The king went out to the wood each day and so on"


@pytest.mark.parametrize("before", [True, False])  # whether it is drawn before or after the text
@pytest.mark.parametrize(
    ("initial", "rest", "lines", "size", "gap", "expected"),
    [
        ("O", "nce upon a", 2, 30, 5, "Once upon a"),
        ("O", "nce upon a", 3, 50, 5, "Once upon a"),
        ("O", "NCE UPON a", 2, 24, 4, "ONCE UPON a"),
        ("\u201cO", "nce upon a", 2, 30, 2, "\u201cOnce upon a"),
        ("A", "long", 2, 30, 9, "A long"),  # the first line begins further right
        ("A", "king", 2, 30, 5, "A king"),  # a word of the page
        ("A", "t this", 2, 30, 5, "At this"),
        ("O", "nce upon a", 1, 30, 2, "Once upon a"),  # on its line
        ("W", "hen upon a", 1, 24, 5, "When upon a"),
        ("A", "king upon a", 1, 30, 5, "A king upon a"),
        ("O", "nce upon a", 1, 30, 12, "O nce upon a"),  # too far
    ],
)
def test_an_initial_joins_its_line(
    initial: str, rest: str, lines: int, size: float, gap: float, expected: str, before: bool
) -> None:
    """The initial stands on the last of its lines, which are 14 points apart."""
    letter = [(40, 100 + 14 * (lines - 1), initial, "Times-Roman", size)]
    left = 40 + stringWidth(initial, "Times-Roman", size)
    indents = [left + gap, *[left + min(gap, 5)] * (lines - 1), *[40.0] * 5]
    texts = (f"{rest} {LINES[0]}", *LINES[1:], MORE, MORE, MORE)
    rows = [
        (left, 100 + 14 * at, text, "Times-Roman", 11)
        for at, (left, text) in enumerate(zip(indents, texts, strict=False))
    ]
    found = parse_pdf(pdf(text_page([*letter, *rows] if before else [*rows, *letter])), "x.pdf").blocks[0]
    assert isinstance(found, Paragraph)
    assert found.text.startswith(" ".join([expected, *LINES, MORE]))  # it ends neither the paragraph nor its line


def test_a_large_letter_with_raised_text_is_no_initial() -> None:
    words = [word("X", 50, 100, 24), word("max", 64, 90), word("is", 84, 100, 12), word("large", 100, 100, 12)]
    assert join_initials(words) == words
