"""Words of pages that reportlab draws; rules, fills, bitmaps and drawings where they are seen.

Forms, rotation, crop boxes, dashes, huge pages.
"""

import random
import time
from typing import Any

import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from documents.left_out import LeftOut
from documents.pdf.drawn_objects import drawn_objects
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.read_page import ASCENT, DESCENT, read_page
from tests.helpers.pdf_pages import SIZE, Draw, both, pdf, text_page

HELLO = text_page([(50, 100, "Hello wide world", "Helvetica", 12)])


def opened(draw: Draw, rotate: int = 0, crop: tuple[float, ...] = ()) -> Any:
    page = pypdfium2.PdfDocument(pdf(draw))[0]
    page.set_rotation(rotate)
    if crop:
        page.set_cropbox(*crop)
    return page


def page_of(draw: Draw, rotate: int = 0, crop: tuple[float, ...] = (), left_out: LeftOut | None = None) -> Page:
    return read_page(opened(draw, rotate, crop), 1, left_out or LeftOut())


def objects_of(page: Any) -> tuple[list[Box], ...]:
    """Rules, fills, bitmaps and drawings."""
    rules, *others = drawn_objects(page)
    return [rule.box for rule in rules], *map(list, others)


def texts(page: Page) -> list[str]:
    return [word.text for word in page.words]


def box(word: PageWord) -> tuple[float, ...]:
    return tuple(round(edge) for edge in word.box)


Boxes = list[tuple[float, float, float, float]]


def near(boxes: Boxes) -> list[Any]:
    return [pytest.approx(box, abs=1.1) for box in boxes]


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


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_a_rotated_page_is_read_as_it_is_shown(rotate: int) -> None:
    """Text that runs upright on the page as it is shown, and a rule, drawn so that the rotation turns them back."""
    width, height = SIZE if rotate in (0, 180) else SIZE[::-1]

    def draw(canvas: Any) -> None:
        canvas.translate(*{0: (0, 0), 90: (SIZE[0], 0), 180: SIZE, 270: (0, SIZE[1])}[rotate])
        canvas.rotate(rotate)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(50, height - 100, "Hello wide world")
        canvas.line(50, height - 200, 350, height - 200)

    turned = page_of(draw, rotate)
    assert (turned.width, turned.height) == (width, height)
    assert [(word.text, box(word), word.upright) for word in turned.words] == [
        (word.text, box(word), True) for word in page_of(HELLO).words
    ]
    assert objects_of(opened(draw, rotate))[0] == near([(50, 200, 350, 200)])


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
    draw = both(text((50, 30, "printer's mark"), (50, 300, "text")), lambda c: c.line(50, 500, 350, 500))
    page = page_of(draw, crop=(20, 50, 380, 540))
    assert (texts(page), page.width, page.height) == (["text"], 360, 490)
    assert page.words[0].box.bottom == pytest.approx(300 - 60 + DESCENT * 12)
    for rotate, rule in ((0, (30, 40, 330, 40)), (180, (30, 450, 330, 450)), (90, (450, 30, 450, 330))):
        assert objects_of(opened(draw, rotate, (20, 50, 380, 540)))[0] == near([rule])


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


def gray(*rectangle: float, shade: float = 0.9, alpha: float = 1) -> Draw:
    def draw(c: Canvas) -> None:
        c.setFillColorRGB(shade, shade, shade, alpha=alpha)
        c.rect(*rectangle, stroke=0, fill=1)

    return draw


def plot(c: Canvas) -> None:
    c.rect(100, 300, 200, 150)
    c.line(110, 310, 290, 440)


def table_with_a_sign(c: Canvas) -> None:
    c.grid([50, 200, 350], [300, 340, 380, 420])
    c.circle(70, 320, 16)


def curves(c: Canvas) -> None:
    c.circle(100, 500, 30)
    c.line(130, 500, 180, 450)
    c.circle(300, 100, 20)


def forms(c: Canvas) -> None:
    c.beginForm("inner")
    c.line(0, 0, 50, 0)
    c.endForm()
    c.beginForm("outer")
    c.translate(0, 10)
    c.doForm("inner")
    c.endForm()
    c.translate(100, 200)
    c.scale(2, 2)
    c.doForm("outer")
    c.line(0, 50, 50, 50)


def pieces(c: Canvas) -> None:
    dashes = [(x, 500, x + 4, 500) for x in range(50, 350, 8)]
    of_cells = [(x, 400, x + 100, 400) for x in (50, 150, 250)]
    double_line, of_columns = [(50, 300, 350, 300), (50, 298, 350, 298)], [(50, 200, 195, 200), (200, 200, 350, 200)]
    for line in [*dashes, *of_cells, *double_line, *of_columns]:
        c.line(*line)


RED = ImageReader(Image.new("RGB", (20, 10), "red"))
ROUNDED = [(56, 220, 344, 220), (50, 226, 50, 294), (350, 226, 350, 294), (56, 300, 344, 300)]
LINES = [(50, 180, 350, 180), *((x, 180, x, 300) for x in (50, 200, 350)), *((50, y, 350, y) for y in (220, 260, 300))]
JOINED = [(50, 100, 350, 100), (50, 200, 350, 200), (50, 300, 350, 302), (50, 400, 195, 400), (200, 400, 350, 400)]


@pytest.mark.parametrize(
    ("draw", "rules", "fills", "bitmaps", "drawings"),
    [
        (lambda c: c.line(50, 500, 350, 500), [(50, 100, 350, 100)], [], [], []),
        (gray(50, 400, 300, 1), [(50, 199, 350, 200)], [], [], []),
        (gray(50, 300, 300, 20), [], [(50, 280, 350, 300)], [], []),
        (gray(50, 300, 300, 20, shade=1), [], [], [], []),
        (gray(50, 300, 300, 20, shade=0, alpha=0), [], [], [], []),
        (lambda c: c.drawImage(RED, 50, 400, 200, 100), [], [], [(50, 100, 250, 200)], []),
        (curves, [], [], [], [(70, 70, 180, 150), (280, 480, 320, 520)]),
        (plot, [], [], [], [(100, 150, 300, 300)]),
        (table_with_a_sign, LINES, [], [], [(54, 264, 86, 296)]),
        (lambda c: c.roundRect(50, 300, 300, 80, 6, fill=1), ROUNDED, [(50, 220, 350, 300)], [], []),
        (forms, [(100, 300, 200, 300), (100, 380, 200, 380)], [], [], []),
        (pieces, JOINED, [], [], []),
    ],
    ids=["line", "thin area", "area", "white", "transparent", "bitmap", "curves near each other", "plot with its axes",
         "sign in a cell of a table", "rounded corners", "forms", "dashes, cells' pieces, double lines, two columns"],
)  # fmt: skip
def test_what_is_drawn_is_where_it_is_seen_from_the_top_left(
    draw: Draw, rules: Boxes, fills: Boxes, bitmaps: Boxes, drawings: Boxes
) -> None:
    assert objects_of(opened(draw)) == (near(rules), near(fills), near(bitmaps), near(drawings))


def nested_forms(c: Canvas) -> None:
    """Forms that repeat each other 160,000 times."""
    for level in range(5):
        c.beginForm(str(level))
        for _ in range(20 if level else 1):
            c.doForm(str(level - 1)) if level else c.line(0, 0, 50, 0)
        c.endForm()
    c.doForm("4")


def paths(slanted: bool) -> Draw:
    """50,000 of them."""
    random_, (width, height) = random.Random(0), SIZE

    def draw(c: Canvas) -> None:
        for _ in range(50_000):
            top = random_.uniform(0, height)
            other = random_.uniform(0, height) if slanted else top
            c.line(random_.uniform(0, width), top, random_.uniform(0, width), other)

    return draw


@pytest.mark.parametrize(
    ("draw", "rules", "drawings"),
    [(paths(True), range(1000), [1]), (paths(False), range(1000), range(1000)), (nested_forms, [1], [0])],
)
def test_a_page_with_many_paths_takes_bounded_time(draw: Draw, rules: range, drawings: range) -> None:
    started = time.process_time()
    found, *_, joined = objects_of(opened(draw))
    assert time.process_time() - started < 30  # 2 s when idle, most of it making the page
    assert len(found) in rules
    assert len(joined) in drawings
