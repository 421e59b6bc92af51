"""Rules, fills, bitmaps and drawings of real PDF pages, where they are seen.

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

from documents.pdf.drawn_objects import drawn_objects
from documents.pdf.page import Box
from tests.helpers.pdf_pages import SIZE, Draw, pdf

Boxes = list[tuple[float, float, float, float]]


def drawn(draw: Draw, rotation: int = 0, crop: tuple[float, ...] = ()) -> tuple[list[Box], ...]:
    """Rules, fills, bitmaps and drawings of a page of 400 by 600 points."""
    page = pypdfium2.PdfDocument(pdf(draw))[0]
    if crop:
        page.set_cropbox(*crop)
    page.set_rotation(rotation)
    rules, *others = drawn_objects(page)
    return [rule.box for rule in rules], *map(list, others)


def near(boxes: Boxes) -> list[Any]:
    return [pytest.approx(box, abs=1.1) for box in boxes]


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
    assert drawn(draw) == (near(rules), near(fills), near(bitmaps), near(drawings))


@pytest.mark.parametrize(
    ("rotation", "expected"), [(0, (30, 70, 330, 70)), (180, (30, 430, 330, 430)), (90, (430, 30, 430, 330))]
)
def test_coordinates_are_those_of_the_page_as_shown(rotation: int, expected: tuple[float, float, float, float]) -> None:
    rules = drawn(lambda c: c.line(50, 500, 350, 500), rotation, (20, 70, 380, 570))[0]
    assert rules == near([expected])


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
    found, *_, joined = drawn(draw)
    assert time.process_time() - started < 30  # 2 s when idle, most of it making the page
    assert len(found) in rules
    assert len(joined) in drawings
