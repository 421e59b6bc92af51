"""Words of pages that reportlab draws."""

from typing import Any

import pypdfium2
import pytest

from documents.left_out import LeftOut
from documents.pdf.page import Page, PageWord
from documents.pdf.read_page import ASCENT, DESCENT, read_page
from tests.helpers.pdf_pages import SIZE, Draw, both, pdf, text_page

HELLO = text_page([(50, 100, "Hello wide world", "Helvetica", 12)])


def page_of(draw: Draw, rotate: int = 0, crop: tuple[float, ...] = (), left_out: LeftOut | None = None) -> Page:
    page = pypdfium2.PdfDocument(pdf(draw))[0]
    page.set_rotation(rotate)
    if crop:
        page.set_cropbox(*crop)
    return read_page(page, 1, left_out or LeftOut())


def texts(page: Page) -> list[str]:
    return [word.text for word in page.words]


def box(word: PageWord) -> tuple[float, ...]:
    return tuple(round(edge) for edge in word.box)


def text(*rows: tuple[float, float, str], size: float = 12) -> Draw:
    return text_page([(left, top, line, "Helvetica", size) for left, top, line in rows])


def test_words_have_their_place_size_font_and_color() -> None:
    page = page_of(HELLO)
    assert (page.number, page.width, page.height, texts(page)) == (1, *SIZE, ["Hello", "wide", "world"])
    hello = page.words[0]
    assert (hello.font, hello.bold, hello.italic, hello.upright, hello.color) == (
        "Helvetica", False, False, True, (0, 0, 0),
    )  # fmt: skip
    assert (hello.size, hello.box.top, hello.box.bottom) == pytest.approx((12, 100 - ASCENT * 12, 100 + DESCENT * 12))
    assert hello.box.left == pytest.approx(50, abs=1.5)

    def draw(canvas: Any) -> None:
        canvas.setFillColorRGB(1, 0, 0.5)
        scaled = canvas.beginText()
        scaled.setFont("Times-BoldItalic", 1)
        scaled.setTextTransform(14, 0, 0, 14, 50, 500)  # the size that the matrix sets
        scaled.textOut("Scaled")
        canvas.drawText(scaled)

    (word,) = page_of(draw).words
    assert (word.bold, word.italic, word.color, word.size) == (True, True, (255, 0, 128), pytest.approx(14))


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_a_rotated_page_is_read_as_it_is_shown(rotate: int) -> None:
    """Text that runs upright on the page as it is shown, drawn so that the rotation turns it back."""

    def draw(canvas: Any) -> None:
        canvas.translate(*{90: (SIZE[0], 0), 180: SIZE, 270: (0, SIZE[1])}[rotate])
        canvas.rotate(rotate)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(50, (SIZE[1] if rotate == 180 else SIZE[0]) - 100, "Hello wide world")

    turned = page_of(draw, rotate)
    assert (turned.width, turned.height) == (SIZE if rotate == 180 else SIZE[::-1])
    assert [(word.text, box(word), word.upright) for word in turned.words] == [
        (word.text, box(word), True) for word in page_of(HELLO).words
    ]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_all_of_whose_text_is_turned_is_turned_back(turn: int, rotate: int) -> None:
    def draw(canvas: Any) -> None:
        canvas.translate(200, 300)
        canvas.rotate(turn)
        canvas.drawString(-100, 0, "Hello wide world")
        canvas.drawString(-100, -14, "again")

    page = page_of(draw, rotate)
    assert texts(page) == ["Hello", "wide", "world", "again"]
    assert all(word.upright for word in page.words)
    assert page.words[0].box.left < page.words[1].box.left
    assert page.words[3].box.top - page.words[0].box.top == pytest.approx(14)


def test_what_a_crop_box_cuts_off_is_left_out() -> None:
    page = page_of(text((50, 30, "printer's mark"), (50, 300, "text")), crop=(20, 50, 380, 540))
    assert (texts(page), page.width, page.height) == (["text"], 360, 490)
    assert page.words[0].box.bottom == pytest.approx(300 - 60 + DESCENT * 12)


def invisible(canvas: Any) -> None:
    written = canvas.beginText(50, 400)
    written.setTextRenderMode(3)
    written.textOut("recognized")
    written.setTextRenderMode(0)
    canvas.drawText(written)


def sideways(canvas: Any) -> None:
    canvas.rotate(90)
    canvas.drawString(100, -50, "axis label")
    canvas.rotate(-90)
    canvas.drawString(100, 100, "text")


@pytest.mark.parametrize(
    ("draw", "words", "left_out"),
    [
        (text((50, 100, "no no no")), "no no no", ()),  # equal words side by side all stay
        (text((50, 100, "left"), (90, 100, "right")), "left right", ()),  # are not joined
        (text(), "", ()),
        (text((50, 100, "Caution now"), (50.4, 100, "Caution")), "CAUTION now",  # drawn twice to look bold
         ('text drawn twice left out once: 1 x, 1 word, e.g. "Caution"',)),
        (sideways, "^axis ^label text", ()),
        (both(HELLO, invisible), "Hello wide world",
         ('invisible text left out: 1 x, 1 word, e.g. "recognized"',)),
        (invisible, "recognized", ()),  # where nothing else is written
        # programs that turn a page leave its box as it was, and then its text is outside of it
        (text((50, -200, "Hello wide world")), "Hello wide world",
         ('text outside of the page read all the same: 1 x, 3 words, e.g. "Hello wide world"',)),
        (both(HELLO, text((50, -200, "mark"))), "Hello wide world",
         ('text outside of the page left out: 1 x, 1 word, e.g. "mark"',)),
    ],
)  # fmt: skip
def test_the_words_of_a_page(draw: Draw, words: str, left_out: tuple[str, ...]) -> None:
    """Bold ones in capitals, sideways ones behind a mark."""
    said = LeftOut()
    page = page_of(draw, left_out=said)
    read = [(word.text.upper() if word.bold else word.text, "^" * (not word.upright)) for word in page.words]
    assert " ".join(mark + text for text, mark in read) == words
    assert all(0 < word.box.bottom < page.height for word in page.words)
    assert said.lines == left_out
