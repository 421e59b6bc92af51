"""Words of pages that reportlab draws."""

from typing import Any

import pypdfium2
import pytest

from documents.left_out import LeftOut
from documents.pdf.page import Page, PageWord
from documents.pdf.read_page import ASCENT, DESCENT, read_page
from tests.helpers.pdf_pages import SIZE, Draw, pdf, text_page

HELLO = text_page([(50, 100, "Hello wide world", "Helvetica", 12)])


def page_of(*draw: Draw, rotate: int = 0, crop: tuple[float, ...] = (), left_out: LeftOut | None = None) -> Page:
    page = pypdfium2.PdfDocument(pdf(*draw))[0]
    if rotate:
        page.set_rotation(rotate)
    if crop:
        page.set_cropbox(*crop)
    return read_page(page, 1, left_out or LeftOut())


def texts(page: Page) -> list[str]:
    return [word.text for word in page.words]


def box(word: PageWord) -> tuple[float, ...]:
    return tuple(round(edge) for edge in word.box)


def test_words_have_their_place_size_and_font() -> None:
    page = page_of(HELLO)
    assert (page.number, page.width, page.height) == (1, *SIZE)
    assert texts(page) == ["Hello", "wide", "world"]
    hello = page.words[0]
    assert hello.size == pytest.approx(12)
    assert hello.font == "Helvetica"
    assert hello.box.left == pytest.approx(50, abs=1.5)
    assert hello.box.top == pytest.approx(100 - ASCENT * 12)
    assert hello.box.bottom == pytest.approx(100 + DESCENT * 12)
    assert (hello.bold, hello.italic, hello.upright, hello.color) == (False, False, True, (0, 0, 0))


def test_bold_italic_and_color() -> None:
    def draw(canvas: Any) -> None:
        canvas.setFillColorRGB(1, 0, 0.5)
        canvas.setFont("Times-BoldItalic", 9)
        canvas.drawString(50, 500, "Warning")

    (word,) = page_of(draw).words
    assert (word.bold, word.italic, word.color) == (True, True, (255, 0, 128))


def test_a_size_set_by_the_text_matrix_counts() -> None:
    def draw(canvas: Any) -> None:
        text = canvas.beginText()
        text.setFont("Helvetica", 1)
        text.setTextTransform(14, 0, 0, 14, 50, 500)
        text.textOut("Scaled")
        canvas.drawText(text)

    (word,) = page_of(draw).words
    assert word.size == pytest.approx(14)


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_a_rotated_page_is_read_as_it_is_shown(rotate: int) -> None:
    """Text that runs upright on the page as it is shown, drawn so that the rotation turns it back."""

    def draw(canvas: Any) -> None:
        canvas.translate(*{90: (SIZE[0], 0), 180: SIZE, 270: (0, SIZE[1])}[rotate])
        canvas.rotate(rotate)
        canvas.setFont("Helvetica", 12)
        height = SIZE[1] if rotate == 180 else SIZE[0]
        canvas.drawString(50, height - 100, "Hello wide world")

    turned, plain = page_of(draw, rotate=rotate), page_of(HELLO)
    assert (turned.width, turned.height) == (SIZE if rotate == 180 else SIZE[::-1])
    assert [(word.text, box(word), True) for word in plain.words] == [
        (word.text, box(word), word.upright) for word in turned.words
    ]


def test_text_that_runs_upwards_is_not_upright() -> None:
    def draw(canvas: Any) -> None:
        canvas.saveState()
        canvas.rotate(90)
        canvas.drawString(100, -50, "axis label")
        canvas.restoreState()
        canvas.drawString(100, 100, "text")

    assert {word.text: word.upright for word in page_of(draw).words} == {"axis": False, "label": False, "text": True}


def test_what_a_crop_box_cuts_off_is_left_out() -> None:
    draw = text_page([(50, 30, "printer's mark", "Helvetica", 9), (50, 300, "text", "Helvetica", 9)])
    page = page_of(draw, crop=(20, 50, 380, 540))
    assert texts(page) == ["text"]
    assert (page.width, page.height) == (360, 490)
    assert page.words[0].box.bottom == pytest.approx(300 - 60 + DESCENT * 9)


def test_text_drawn_twice_to_look_bold_is_one_bold_word() -> None:
    draw = text_page([(50, 100, "Caution now", "Helvetica", 12), (50.4, 100, "Caution", "Helvetica", 12)])
    assert [(word.text, word.bold) for word in page_of(draw).words] == [("Caution", True), ("now", False)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(50, 100, "no no no", "Helvetica", 12)], ["no", "no", "no"]),  # equal words side by side both stay
        (
            [(50, 100, "left", "Helvetica", 12), (90, 100, "right", "Helvetica", 12)],
            ["left", "right"],
        ),  # are not joined
        ([], []),
    ],
)
def test_the_words_of_a_page(rows: list[tuple[float, float, str, str, float]], expected: list[str]) -> None:
    assert texts(page_of(text_page(rows))) == expected


def invisible(canvas: Any) -> None:
    text = canvas.beginText(50, 400)
    text.setTextRenderMode(3)
    text.textOut("recognized")
    text.setTextRenderMode(0)
    canvas.drawText(text)


def test_invisible_text_stays_only_where_nothing_else_is_written() -> None:
    def both(canvas: Any) -> None:
        HELLO(canvas)
        invisible(canvas)

    left_out = LeftOut()
    assert texts(page_of(both, left_out=left_out)) == ["Hello", "wide", "world"]
    assert left_out.lines == ('invisible text left out: 1 x, 1 word, e.g. "recognized"',)
    assert texts(page_of(invisible)) == ["recognized"]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_all_of_whose_text_is_turned_is_turned_back(turn: int, rotate: int) -> None:
    def draw(canvas: Any) -> None:
        canvas.translate(200, 300)
        canvas.rotate(turn)
        canvas.drawString(-100, 0, "Hello wide world")
        canvas.drawString(-100, -14, "again")

    page = page_of(draw, rotate=rotate)
    assert texts(page) == ["Hello", "wide", "world", "again"]
    assert all(word.upright for word in page.words)
    assert page.words[0].box.left < page.words[1].box.left
    assert page.words[3].box.top - page.words[0].box.top == pytest.approx(14)


def test_text_outside_of_a_page_that_is_not_cropped_is_read() -> None:
    """Programs that turn a page leave its box as it was, and then its text is outside of it."""
    left_out = LeftOut()
    page = page_of(text_page([(50, -200, "Hello wide world", "Helvetica", 12)]), left_out=left_out)
    assert texts(page) == ["Hello", "wide", "world"]
    assert 0 < page.words[0].box.bottom < page.height
    assert left_out.lines == ('text outside of the page read all the same: 1 x, 3 words, e.g. "Hello wide world"',)
    few = text_page([(50, -200, "mark", "Helvetica", 12), (50, 100, "Hello wide world", "Helvetica", 12)])
    assert texts(page_of(few)) == ["Hello", "wide", "world"]
