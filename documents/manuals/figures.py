"""Figures of the library's manuals: vector drawings, and a bitmap of the front."""

import io
from itertools import pairwise
from random import Random

from PIL import Image as Picture
from PIL import ImageDraw
from reportlab.graphics.shapes import Circle, Drawing, Group, Line, Polygon, PolyLine, Rect, String
from reportlab.lib.colors import HexColor, black, white
from reportlab.platypus import Image

from documents.manuals.manual import ManualBlock
from documents.manuals.styles import ManualStyle

GREY = HexColor("#e4e6ea")


def draw(block: ManualBlock, style: ManualStyle, width: float, random: Random) -> Drawing | Image:
    """The figure of a block.

    Args:
        block: Its name says what is drawn, its rows what is written in it.
        style: The manual's style.
        width: Of the column, points.
        random: For shapes that carry no meaning.
    """
    labels = [row[0] for row in block.rows]
    if block.name == "front":
        return _front(min(width, 220), random)
    width = min(width, 380)
    drawn = {"blocks": _block_diagram, "terminals": _terminals, "curve": _curve}[block.name]
    return drawn(labels, width, style.fonts[0], random)


def _block_diagram(labels: list[str], width: float, font: str, random: Random) -> Drawing:
    """Boxes in two rows, joined by arrows in the order of the labels."""
    columns = (len(labels) + 1) // 2
    cell, box_height, height = width / columns, 30.0, 130.0
    drawing = Drawing(width, height)
    size = min(8.0, 0.8 * cell / (0.52 * max(map(len, labels))))
    places = []
    for number, label in enumerate(labels):
        row, column = divmod(number, columns)
        column = column if row == 0 else columns - 1 - column  # the second row runs back
        x, y = cell * (column + 0.5), height - 30 - 65 * row
        places.append((x, y))
        drawing.add(
            Rect(x - 0.42 * cell, y - box_height / 2, 0.84 * cell, box_height, fillColor=GREY, strokeColor=black)
        )
        drawing.add(String(x, y - 3, label, fontName=font, fontSize=size, textAnchor="middle"))
    for (x, y), (to_x, to_y) in pairwise(places):
        if y == to_y:
            side = 1 if to_x > x else -1
            drawing.add(_arrow(x + side * 0.42 * cell, y, to_x - side * 0.42 * cell, to_y))
        else:
            drawing.add(_arrow(x, y - box_height / 2, to_x, to_y + box_height / 2))
    return drawing


def _arrow(x: float, y: float, to_x: float, to_y: float) -> Group:
    head = 4.0
    if y == to_y:
        back = to_x - head if to_x > x else to_x + head
        tip = [to_x, to_y, back, to_y + head / 2, back, to_y - head / 2]
    else:
        tip = [to_x, to_y, to_x - head / 2, to_y + head, to_x + head / 2, to_y + head]
    return Group(Line(x, y, to_x, to_y, strokeWidth=0.8), Polygon(tip, fillColor=black, strokeWidth=0.1))


def _terminals(labels: list[str], width: float, font: str, random: Random) -> Drawing:
    """A row of terminals X1, X2, ... with what is connected to each below it, in steps."""
    strip, height = 0.68 * width, 58.0 + 11.0 * len(labels)
    cell, top = strip / len(labels), height - 18
    drawing = Drawing(width, height)
    drawing.add(Rect(1, top - 16, strip - 2, 32, fillColor=GREY, strokeColor=black, strokeWidth=1))
    for number, label in enumerate(labels):
        x, y = cell * (number + 0.5), top - 26 - 11 * (len(labels) - number)
        drawing.add(Circle(x, top - 5, 4.5, fillColor=white, strokeColor=black))
        drawing.add(Line(x - 3, top - 8, x + 3, top - 2, strokeWidth=0.8))
        drawing.add(String(x, top + 5, f"X{number + 1}", fontName=font, fontSize=7, textAnchor="middle"))
        drawing.add(PolyLine([x, top - 10, x, y, x + 6, y], strokeWidth=0.8))
        drawing.add(String(x + 9, y - 2.5, label, fontName=font, fontSize=7))
    return drawing


def _curve(labels: list[str], width: float, font: str, random: Random) -> Drawing:
    """A falling characteristic with axes and a grid."""
    height, left, bottom = 0.5 * width, 34.0, 26.0
    drawing = Drawing(width, height)
    across, up = width - left - 8, height - bottom - 8
    for step in range(6):
        x, y = left + across * step / 5, bottom + up * step / 5
        drawing.add(Line(x, bottom, x, bottom + up, strokeColor=GREY, strokeWidth=0.5))
        drawing.add(Line(left, y, left + across, y, strokeColor=GREY, strokeWidth=0.5))
        for number, at in ((f"{20 * step}", (x, bottom - 9)), (f"{20 * step}", (left - 10, y - 2))):
            drawing.add(String(*at, number, fontName=font, fontSize=6, textAnchor="middle"))
    bend = random.uniform(1.5, 3)
    points = [(left + across * t / 20, bottom + up * (0.92 - 0.85 * (t / 20) ** bend)) for t in range(21)]
    drawing.add(PolyLine([number for point in points for number in point], strokeWidth=1.4))
    drawing.add(PolyLine([left, bottom + up, left, bottom, left + across, bottom], strokeWidth=1))
    drawing.add(String(left + across / 2, 4, f"{labels[0]} in %", fontName=font, fontSize=7, textAnchor="middle"))
    turned = Group(String(0, 0, f"{labels[1]} in %", fontName=font, fontSize=7, textAnchor="middle"))
    turned.translate(9, bottom + up / 2)
    turned.rotate(90)
    drawing.add(turned)
    return drawing


def _front(width: float, random: Random) -> Image:
    """A grey picture of a housing with display, knob and vents."""
    size = (420, 300)
    picture = Picture.linear_gradient("L").resize(size).point(lambda level: 255 - level // 4)
    pen = ImageDraw.Draw(picture)
    pen.rounded_rectangle((60, 30, 360, 270), radius=18, fill=205, outline=60, width=4)
    left = random.randrange(90, 150)
    pen.rectangle((left, 60, left + 110, 130), fill=90, outline=30, width=3)
    for line in range(3):
        pen.line((left + 12, 78 + 16 * line, left + 60 + random.randrange(40), 78 + 16 * line), fill=220, width=4)
    knob = random.randrange(285, 320)
    pen.ellipse((knob - 24, 75, knob + 24, 123), fill=150, outline=40, width=3)
    pen.line((knob, 99, knob + 10, 80), fill=40, width=4)
    for vent in range(random.randrange(5, 9)):
        pen.line((100, 165 + 11 * vent, 320, 165 + 11 * vent), fill=120, width=4)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return Image(file, width, width * size[1] / size[0])
