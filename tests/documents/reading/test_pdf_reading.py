"""PDF files as documents: whole files that reportlab draws, and files that cannot be read."""

from typing import Any

import pytest
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import stringWidth

from common.errors import DataError
from documents.reading.pdf_reading import parse_pdf
from documents.records import Heading, Paragraph
from tests.helpers.pdf_pages import pdf, text_page

PROSE = "The pump moves water through the housing while the motor turns at the rated speed and the"
Rows = list[tuple[float, float, str, str, float]]


def prose(top: float, lines: int) -> Rows:
    return [(40, top + 13 * line, PROSE, "Times-Roman", 9) for line in range(lines)]


def manual(**options: Any) -> bytes:
    first = [(120, 80, "Pump P-300 Manual", "Helvetica-Bold", 22), *prose(150, 4)]
    second = [(40, 60, "1 Installation", "Helvetica-Bold", 14), *prose(90, 6)]
    second += [(40, 200, "1.1 Mounting the pump", "Helvetica-Bold", 11), *prose(220, 8)]
    third = [(40, 60, "2 Maintenance", "Helvetica-Bold", 14), *prose(90, 12)]
    return pdf(text_page(first), text_page(second), text_page(third), **options)


def test_headings_with_levels_and_pages_and_a_title_that_is_none() -> None:
    headings = [("1 Installation", 1, 2), ("1.1 Mounting the pump", 2, 2), ("2 Maintenance", 1, 3)]
    document = parse_pdf(manual(), "manuals/p300.pdf")
    assert (document.title, document.pages, document.left_out) == ("Pump P-300 Manual", 3, ())
    assert [(one.text, one.level, one.page) for one in document.blocks if isinstance(one, Heading)] == headings
    paragraphs = [block for block in document.blocks if isinstance(block, Paragraph)]
    assert [block.page for block in paragraphs] == [1, 2, 2, 3]
    assert paragraphs[0].text == " ".join([PROSE] * 4)
    first = parse_pdf(manual(), "p300.pdf", max_pages=2)
    assert (first.pages, first.left_out) == (3, ("page 3: only the first 2 pages are read",))
    assert first.blocks == document.blocks[:-2]


def scan(canvas: Any) -> None:
    canvas.drawImage(ImageReader(Image.new("L", (40, 60), 180)), 0, 0, 400, 600)


OWNERS = StandardEncryption("", ownerPassword="owner", canPrint=0, strength=128)  # who alone may change it


@pytest.mark.parametrize(
    ("data", "title", "left_out"),
    [
        (pdf(text_page(prose(100, 5)), scan, scan), "a", ("pages 2-3: no text (scanned?)",)),
        (manual(encrypt=OWNERS), "Pump P-300 Manual", ()),
        (pdf(lambda canvas: None), "a", ()),
    ],
    ids=["scanned pages", "its owner's", "without text"],
)
def test_other_files_are_read(data: bytes, title: str, left_out: tuple[str, ...]) -> None:
    document = parse_pdf(data, "a.pdf")
    assert (document.title, document.left_out) == (title, left_out)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        *((data, "broken or no PDF file") for data in (b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\x00" * 1000)),
        (manual(encrypt=StandardEncryption("secret", strength=128)), "encrypted: remove its password"),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(DataError, match=rf"x\.pdf is {why}"):
        parse_pdf(data, "x.pdf")


def test_raised_figures_keep_their_place_and_the_marks_of_notes_are_set_apart() -> None:
    def row(top: float, *parts: str) -> Rows:
        """Parts of a line, every second one raised."""
        drawn, left = [], 40.0
        for at, part in enumerate(parts):
            size = 6.0 if at % 2 else 9.0
            drawn.append((left, top - 4 * (at % 2), part, "Times-Roman", size))
            left += stringWidth(part, "Times-Roman", size)
        return drawn

    top = row(100, "The fee is $320", "1", " for 10", "6", " people on 9 km", "2", " since May 1990", "1,2", " for")
    top += row(113, "x", "2n", " or 5 x 10", "-2", " people.", "2")
    notes = [(40, 560, "1 Without tax.", "Times-Roman", 8), (40, 570, "2 Census.", "Times-Roman", 8)]
    document = parse_pdf(pdf(text_page([*top, *prose(140, 9), *notes])), "x.pdf")
    first, *_, one, two = [block.text for block in document.blocks if isinstance(block, Paragraph)]
    assert (first, one, two) == (
        "The fee is $320 [1] for 10\u2076 people on 9 km\u00b2 since May 1990 [1,2] for "
        "x\u00b2\u207f or 5 x 10\u207b\u00b2 people. [2]", "1 Without tax.", "2 Census.",
    )  # fmt: skip
    assert document.left_out == ('footnotes put behind their paragraphs: 2 x, 5 words, e.g. "1 Without tax."',)
