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


def prose(top: float, lines: int, left: float = 40) -> list[tuple[float, float, str, str, float]]:
    return [(left, top + 13 * line, PROSE, "Times-Roman", 9) for line in range(lines)]


def manual(**options: Any) -> bytes:
    first = [(120, 80, "Pump P-300 Manual", "Helvetica-Bold", 22), *prose(150, 4)]
    second = [(40, 60, "1 Installation", "Helvetica-Bold", 14), *prose(90, 6)]
    second += [(40, 200, "1.1 Mounting the pump", "Helvetica-Bold", 11), *prose(220, 8)]
    third = [(40, 60, "2 Maintenance", "Helvetica-Bold", 14), *prose(90, 12)]
    return pdf(text_page(first), text_page(second), text_page(third), **options)


def test_headings_with_levels_and_pages_and_a_title_that_is_none() -> None:
    document = parse_pdf(manual(), "manuals/p300.pdf")
    assert document.title == "Pump P-300 Manual"
    assert document.pages == 3
    assert document.left_out == ()
    assert [block for block in document.blocks if isinstance(block, Heading)] == [
        Heading("1 Installation", 1, 2),
        Heading("1.1 Mounting the pump", 2, 2),
        Heading("2 Maintenance", 1, 3),
    ]
    paragraphs = [block for block in document.blocks if isinstance(block, Paragraph)]
    assert [block.page for block in paragraphs] == [1, 2, 2, 3]
    assert paragraphs[0].text == " ".join([PROSE] * 4)


def test_pages_beyond_the_limit_are_named() -> None:
    document = parse_pdf(manual(), "p300.pdf", max_pages=2)
    assert document.pages == 3
    assert document.left_out == ("page 3: only the first 2 pages are read",)
    assert "2 Maintenance" not in [block.text for block in document.blocks if isinstance(block, Heading)]


def test_a_scanned_page_is_named() -> None:
    def scan(canvas: Any) -> None:
        canvas.drawImage(ImageReader(Image.new("L", (40, 60), 180)), 0, 0, 400, 600)

    document = parse_pdf(pdf(text_page(prose(100, 5)), scan, scan), "scan.pdf")
    assert document.left_out == ("pages 2-3: no text (scanned?)",)


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\x00" * 1000])
def test_what_is_no_pdf_file_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"x\.pdf is broken or no PDF file"):
        parse_pdf(data, "x.pdf")


def test_an_encrypted_file_is_refused() -> None:
    with pytest.raises(DataError, match=r"x\.pdf is encrypted: remove its password"):
        parse_pdf(manual(encrypt=StandardEncryption("secret", strength=128)), "x.pdf")


def test_a_file_that_only_its_owner_may_change_is_read() -> None:
    data = manual(encrypt=StandardEncryption("", ownerPassword="owner", canPrint=0, strength=128))
    assert parse_pdf(data, "x.pdf").title == "Pump P-300 Manual"


def test_a_file_without_pages_gives_an_empty_document() -> None:
    document = parse_pdf(pdf(lambda canvas: None), "empty.pdf")
    assert (document.title, document.blocks, document.left_out) == ("empty", (), ())


def test_raised_figures_keep_their_place_and_the_marks_of_notes_are_set_apart() -> None:
    def row(top: float, *parts: str) -> list[tuple[float, float, str, str, float]]:
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
    assert first == (
        "The fee is $320 [1] for 10\u2076 people on 9 km\u00b2 since May 1990 [1,2] for "
        "x\u00b2\u207f or 5 x 10\u207b\u00b2 people. [2]"
    )
    assert (one, two) == ("1 Without tax.", "2 Census.")
    assert document.left_out == ('footnotes put behind their paragraphs: 2 x, 5 words, e.g. "1 Without tax."',)
