"""Pages of words and rules as a PDF reader gives them, typed by hand or read from files that reportlab makes."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from documents.pdf.page import Box, Page, PageWord, Rule

CHARACTER = 5.0  # points that a character of a 10-point font takes
HEIGHT = 10.0


def words(
    text: str, left: float, top: float, bold: bool = False, size: float = HEIGHT, font: str = "Serif"
) -> list[PageWord]:
    """A line's words with blanks of a quarter of the font size between them."""
    found, at = [], left
    for number, part in enumerate(text.split()):
        width = len(part) * CHARACTER * size / HEIGHT * (0.84 + 0.08 * ((len(part) + number) % 5))  # no monospaced font
        found.append(PageWord(part, Box(at, top, at + width, top + size), size, font, bold, False))
        at += width + 0.25 * size
    return found


def cells(rows: Sequence[Sequence[str]], lefts: Sequence[float], top: float, pitch: float = 14.0) -> list[PageWord]:
    """Words of cells, each row `pitch` points under the one before.

    "|" divides the lines of a cell, 11 points apart.
    """
    found: list[PageWord] = []
    for row in rows:
        for text, left in zip(row, lefts, strict=True):
            for number, line in enumerate(text.split("|")):
                found += words(line, left, top + 11 * number)
        top += pitch + 11 * max(text.count("|") for text in row)
    return found


def rule(left: float, top: float, right: float, bottom: float) -> Rule:
    """A rule half a point thick."""
    if bottom - top < right - left:
        return Rule(Box(left, top - 0.25, right, top + 0.25))
    return Rule(Box(left - 0.25, top, left + 0.25, bottom))


def page(words: Sequence[PageWord], rules: Sequence[Rule] = (), **hard_negatives: Any) -> Page:
    """An A4 page."""
    return Page(1, 595.0, 842.0, tuple(words), tuple(rules), **hard_negatives)


def drawn_pages(data: bytes) -> list[tuple[Any, Page]]:
    """The pages of a PDF file: as pdfium opens them, and their record."""
    import pypdfium2

    from documents.left_out import LeftOut
    from documents.pdf.read_page import read_page

    opened = enumerate(pypdfium2.PdfDocument(data), 1)
    return [(page, read_page(page, number, LeftOut())) for number, page in opened]


def story_pdf(story: list[Any], **template: Any) -> bytes:
    """A PDF file of reportlab's flowables."""
    from reportlab.platypus import SimpleDocTemplate

    data = BytesIO()
    SimpleDocTemplate(data, **template).build(story)
    return data.getvalue()
