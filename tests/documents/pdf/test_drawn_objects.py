"""Rules, fills, bitmaps and drawings of real PDF pages, where they are seen.

Forms, rotation, crop boxes, dashes, huge pages.
"""

import random
import time
from collections.abc import Callable
from io import BytesIO

import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from documents.pdf.drawn_objects import drawn_objects
from documents.pdf.page import Box

WIDTH, HEIGHT = 400, 600


def drawn(draw: Callable[[Canvas], object]) -> tuple[list[Box], list[Box], list[Box], list[Box]]:
    """What is found on a page of 400 by 600 points."""
    data = BytesIO()
    canvas = Canvas(data, pagesize=(WIDTH, HEIGHT))
    draw(canvas)
    canvas.showPage()
    canvas.save()
    page = pypdfium2.PdfDocument(data.getvalue())[0]
    rules, fills, bitmaps, drawings = drawn_objects(page)
    return [rule.box for rule in rules], list(fills), list(bitmaps), list(drawings)


def close_to(box: Box, expected: tuple[float, float, float, float], points: float = 1.1) -> bool:
    return all(abs(one - other) <= points for one, other in zip(box, expected, strict=True))


def test_a_line_is_a_rule_measured_from_the_top_left() -> None:
    rules, fills, bitmaps, drawings = drawn(lambda c: c.line(50, 500, 350, 500))
    assert len(rules) == 1
    assert close_to(rules[0], (50, 100, 350, 100))
    assert (fills, bitmaps, drawings) == ([], [], [])


def test_a_thin_filled_rectangle_is_a_rule_and_a_thick_one_a_fill() -> None:
    def draw(c: Canvas) -> None:
        c.rect(50, 400, 300, 1, stroke=0, fill=1)
        c.setFillGray(0.9)
        c.rect(50, 300, 300, 20, stroke=0, fill=1)

    rules, fills, _, drawings = drawn(draw)
    assert len(rules) == len(fills) == 1
    assert close_to(rules[0], (50, 199, 350, 200))
    assert close_to(fills[0], (50, 280, 350, 300))
    assert drawings == []


def test_white_and_transparent_areas_are_not_seen() -> None:
    def draw(c: Canvas) -> None:
        c.setFillGray(1)
        c.rect(50, 300, 300, 20, stroke=0, fill=1)
        c.setFillColorRGB(0, 0, 0, alpha=0)
        c.rect(50, 200, 300, 20, stroke=0, fill=1)

    assert drawn(draw) == ([], [], [], [])


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


def test_a_grid_gives_each_line_once() -> None:
    rules = drawn(lambda c: c.grid([50, 150, 350], [300, 320, 340, 360]))[0]
    horizontal = [rule for rule in rules if rule.right - rule.left > rule.bottom - rule.top]
    assert [round(rule.top + rule.bottom) / 2 for rule in horizontal] == [240, 260, 280, 300]
    assert len(rules) == 4 + 3


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

    rules = drawn(draw)[0]
    assert len(rules) == 2
    assert close_to(rules[0], (100, 300, 200, 300))
    assert close_to(rules[1], (100, 380, 200, 380))


@pytest.mark.parametrize(
    ("rotation", "expected"), [(0, (30, 70, 330, 70)), (180, (30, 430, 330, 430)), (90, (430, 30, 430, 330))]
)
def test_coordinates_are_those_of_the_page_as_shown(rotation: int, expected: tuple[float, float, float, float]) -> None:
    data = BytesIO()
    canvas = Canvas(data, pagesize=(WIDTH, HEIGHT))
    canvas.line(50, 500, 350, 500)
    canvas.showPage()
    canvas.save()
    document = pypdfium2.PdfDocument(data.getvalue())
    page = document[0]
    page.set_cropbox(20, 70, 380, 570)
    page.set_rotation(rotation)
    rules = drawn_objects(document[0])[0]
    assert len(rules) == 1
    assert close_to(rules[0].box, expected)


def test_curves_and_slanted_lines_near_each_other_are_one_drawing() -> None:
    def draw(c: Canvas) -> None:
        c.circle(100, 500, 30)
        c.line(130, 500, 180, 450)
        c.circle(300, 100, 20)

    rules, fills, _, drawings = drawn(draw)
    assert (rules, fills) == ([], [])
    assert len(drawings) == 2
    assert close_to(drawings[0], (70, 70, 180, 150))


def test_the_axes_of_a_plot_belong_to_it_but_a_tables_lines_do_not_belong_to_a_sign_in_a_cell() -> None:
    def plot(c: Canvas) -> None:
        c.rect(100, 300, 200, 150)
        c.line(110, 310, 290, 440)

    def table(c: Canvas) -> None:
        c.grid([50, 200, 350], [300, 340, 380, 420])
        c.circle(70, 320, 16)

    rules, _, _, drawings = drawn(plot)
    assert rules == []
    assert len(drawings) == 1
    assert close_to(drawings[0], (100, 150, 300, 300))
    rules, _, _, drawings = drawn(table)
    assert len(rules) == 7
    assert len(drawings) == 1


def test_a_box_with_rounded_corners_is_no_drawing() -> None:
    def draw(c: Canvas) -> None:
        c.setFillGray(0.9)
        c.roundRect(50, 300, 300, 80, 6, stroke=1, fill=1)

    rules, fills, _, drawings = drawn(draw)
    assert drawings == []
    assert len(rules) == 4
    assert close_to(fills[0], (50, 220, 350, 300))


def test_a_bitmap_is_where_it_is_shown() -> None:
    picture = ImageReader(Image.new("RGB", (20, 10), "red"))
    bitmaps = drawn(lambda c: c.drawImage(picture, 50, 400, 200, 100))[2]
    assert len(bitmaps) == 1
    assert close_to(bitmaps[0], (50, 100, 250, 200))


@pytest.mark.parametrize("slanted", [True, False])
def test_a_page_with_50_000_paths_takes_bounded_time(slanted: bool) -> None:
    random_ = random.Random(0)

    def draw(c: Canvas) -> None:
        for _ in range(50_000):
            x, y = random_.uniform(0, WIDTH), random_.uniform(0, HEIGHT)
            c.line(x, y, random_.uniform(0, WIDTH), random_.uniform(0, HEIGHT) if slanted else y)

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
