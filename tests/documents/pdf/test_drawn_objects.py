"""Rules, fills, bitmaps and drawings of real PDF pages, where they are seen.

Forms, rotation, crop boxes, dashes, huge pages.
"""

import random
import time
from collections.abc import Callable
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


def drawn(draw: Callable[[Canvas], object], rotation: int = 0, crop: tuple[float, ...] = ()) -> tuple[list[Box], ...]:
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


RED = ImageReader(Image.new("RGB", (20, 10), "red"))
ROUNDED = [(56, 220, 344, 220), (50, 226, 50, 294), (350, 226, 350, 294), (56, 300, 344, 300)]
LINES = [(50, 180, 350, 180), *((x, 180, x, 300) for x in (50, 200, 350)), *((50, y, 350, y) for y in (220, 260, 300))]


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
    ],
    ids=["line", "thin area", "area", "white", "transparent", "bitmap", "curves near each other", "plot with its axes",
         "sign in a cell of a table", "rounded corners"],
)  # fmt: skip
def test_what_is_drawn_is_where_it_is_seen_from_the_top_left(
    draw: Draw, rules: Boxes, fills: Boxes, bitmaps: Boxes, drawings: Boxes
) -> None:
    assert drawn(draw) == (near(rules), near(fills), near(bitmaps), near(drawings))


def test_dashes_cells_pieces_and_double_lines_are_one_rule_but_columns_rules_stay_apart() -> None:
    def draw(c: Canvas) -> None:
        for x in range(50, 350, 8):  # dashes of 4 points
            c.line(x, 500, x + 4, 500)
        for x in (50, 150, 250):  # a piece for each cell
            c.line(x, 400, x + 100, 400)
        c.line(50, 300, 350, 300)  # a double line
        c.line(50, 298, 350, 298)
        c.line(50, 200, 195, 200)  # rules of two columns
        c.line(200, 200, 350, 200)

    rules = drawn(draw)[0]
    assert [round(rule.top / 100) for rule in rules] == [1, 2, 3, 4, 4]
    assert [round(rule.right - rule.left) for rule in rules] == [300, 300, 300, 145, 150]


def test_what_a_form_draws_is_found_where_it_is_placed() -> None:
    def draw(c: Canvas) -> None:
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

    assert drawn(draw)[0] == near([(100, 300, 200, 300), (100, 380, 200, 380)])


@pytest.mark.parametrize(
    ("rotation", "expected"), [(0, (30, 70, 330, 70)), (180, (30, 430, 330, 430)), (90, (430, 30, 430, 330))]
)
def test_coordinates_are_those_of_the_page_as_shown(rotation: int, expected: tuple[float, float, float, float]) -> None:
    rules = drawn(lambda c: c.line(50, 500, 350, 500), rotation, (20, 70, 380, 570))[0]
    assert rules == near([expected])


@pytest.mark.parametrize("slanted", [True, False])
def test_a_page_with_50_000_paths_takes_bounded_time(slanted: bool) -> None:
    random_ = random.Random(0)

    def draw(c: Canvas) -> None:
        for _ in range(50_000):
            x, y = random_.uniform(0, SIZE[0]), random_.uniform(0, SIZE[1])
            c.line(x, y, random_.uniform(0, SIZE[0]), random_.uniform(0, SIZE[1]) if slanted else y)

    started = time.process_time()
    rules, _, _, drawings = drawn(draw)
    assert time.process_time() - started < 30  # 2 s when idle, most of it making the page
    assert len(drawings) == 1 if slanted else len(rules) < 1000


def test_forms_that_repeat_each_other_160_000_times_take_bounded_time() -> None:
    def draw(c: Canvas) -> None:
        c.beginForm("0")
        c.line(0, 0, 50, 0)
        c.endForm()
        for level in range(1, 5):
            c.beginForm(str(level))
            for _ in range(20):
                c.doForm(str(level - 1))
            c.endForm()
        c.doForm("4")

    started = time.process_time()
    assert len(drawn(draw)[0]) == 1
    assert time.process_time() - started < 30
