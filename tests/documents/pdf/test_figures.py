"""Figures of real PDF pages: bitmaps of all kinds, drawings, captions, labels, logos; and what is no figure."""

import io
import math
from typing import Any

import pypdfium2
import pytest
from PIL import Image as Pillow
from reportlab.lib.utils import ImageReader

from documents.left_out import LeftOut
from documents.pdf.figures import find_figures
from documents.pdf.page import Box
from documents.pdf.read_page import read_page
from documents.pdf.tables import find_tables
from documents.records import Image
from tests.helpers.pdf_pages import SIZE, Draw, both, pdf, text_page


def figures(*draws: Draw) -> list[tuple[Box, Image]]:
    """The figures of a page."""
    opened = pypdfium2.PdfDocument(pdf(both(*draws)))[0]
    page = read_page(opened, 1, LeftOut())
    return find_figures(opened, page, [box for box, _ in find_tables(page)])


def photo(mode: str = "RGB", width: int = 120, height: int = 60) -> Pillow.Image:
    """A picture with a color of its own in each corner."""
    picture = Pillow.new("RGB", (2, 2), "white")
    for place, color in (((0, 0), (255, 0, 0)), ((1, 0), (0, 128, 0)), ((0, 1), (0, 0, 255))):
        picture.putpixel(place, color)
    return picture.resize((width, height), Pillow.Resampling.NEAREST).convert(mode)


def jpeg(picture: Pillow.Image) -> io.BytesIO:
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=90)
    data.seek(0)
    return data


def colors(picture: Pillow.Image) -> str:
    """What colors the four quarters have: r(ed), g(reen), b(lue), w(hite) or k (dark)."""
    small, found = picture.convert("RGB").resize((2, 2), Pillow.Resampling.BOX), ""
    for place in ((0, 0), (1, 0), (0, 1), (1, 1)):
        parts: Any = small.getpixel(place)
        gray = "w" if min(parts) > 225 else "k"
        found += "rgb"[parts.index(max(parts))] if max(parts) - min(parts) > 60 else gray
    return found


def text(*lines: tuple[float, float, str]) -> Draw:
    """Draws lines of text: left, bottom, text."""
    return text_page([(left, SIZE[1] - bottom, line, "Helvetica", 9) for left, bottom, line in lines])


def shows(picture: Any, left: float, bottom: float, width: float, height: float, **options: Any) -> Draw:
    return lambda canvas: canvas.drawImage(ImageReader(picture), left, bottom, width, height, **options)


def curve(canvas: Any) -> None:
    """A plot: axes, a wave, names of the axes."""
    canvas.setFont("Helvetica", 8)
    canvas.rect(80, 300, 200, 120)
    canvas.lines(
        [(80 + x, 360 + 50 * math.sin(x / 20), 84 + x, 360 + 50 * math.sin(x / 20 + 0.2)) for x in range(0, 197, 4)]
    )
    for tick in range(5):
        canvas.drawString(80 + 45 * tick, 289, str(tick))
    canvas.drawString(160, 278, "Time / s")
    canvas.rotate(90)
    canvas.drawString(330, -74, "Height")
    canvas.rotate(-90)


def turned(canvas: Any) -> None:
    canvas.translate(300, 200)
    canvas.rotate(90)
    canvas.drawImage(ImageReader(jpeg(photo())), 0, 0, 240, 120)


CUT = photo("RGBA")
CUT.paste((0, 0, 0, 0), (0, 0, 60, 30))


@pytest.mark.parametrize(
    ("draw", "seen"),
    [
        (shows(photo("1"), 50, 300, 240, 120), "kkkw"),
        (shows(photo("L"), 50, 300, 240, 120), "kkkw"),
        *((shows(photo(mode), 50, 300, 240, 120, mask="auto"), "rgbw") for mode in ("P", "RGB", "RGBA", "CMYK")),
        (shows(jpeg(photo("CMYK")), 50, 300, 240, 120), "rgbw"),  # as shown
        (shows(CUT, 50, 300, 240, 120, mask="auto"), "wgbw"),  # what a mask hides is white
        (turned, "gwrb"),
    ],
    ids=["1", "L", "P", "RGB", "RGBA", "CMYK", "CMYK in JPEG", "mask", "turned"],
)
def test_bitmaps_that_cannot_be_taken_out_become_png(draw: Draw, seen: str) -> None:
    ((_, image),) = figures(draw)
    picture = Pillow.open(io.BytesIO(image.data))
    assert (image.suffix, colors(picture)) == (".png", seen)
    assert sorted(picture.size) == pytest.approx([60, 120], abs=3)


def test_a_jpeg_is_taken_out_as_it_is_unless_it_is_huge() -> None:
    data = jpeg(photo())
    ((box, image),) = figures(shows(data, 50, 300, 240, 120))
    assert image == Image(data.getvalue(), ".jpg", "", "", 1)
    assert box == pytest.approx((50, 180, 290, 300), abs=1)
    ((_, image),) = figures(shows(jpeg(photo(width=6000, height=3000)), 50, 300, 300, 150))
    assert max(Pillow.open(io.BytesIO(image.data)).size) <= 2010


PROSE = text(*((40, 200 - 12 * n, "and the reader is told what the picture above is to show here") for n in range(9)))


def test_a_drawing_is_rendered_with_its_labels_and_without_its_caption() -> None:
    ((box, image),) = figures(curve, text((100, 262, "Figure 2: Height of the wave")), PROSE)
    assert image.suffix == ".png"
    assert (box.top, box.bottom) == pytest.approx((180, 340), abs=4)
    assert Pillow.open(io.BytesIO(image.data)).size[0] >= 2 * 200


def boxes(canvas: Any) -> None:
    """A diagram."""
    for left, name in ((60, "read"), (150, "cut"), (240, "index")):
        canvas.rect(left, 400, 60, 40)
        text((left + 10, 416, name))(canvas)
    canvas.lines([(120, 420, 150, 420), (210, 420, 240, 420)])


def plot(canvas: Any) -> None:
    """The name below stands nearer to the caption than to the curve, the other one behind numbers at its axis."""
    path = canvas.beginPath()
    path.moveTo(80, 300)
    for x in range(0, 200, 20):
        path.curveTo(85 + x, 350, 95 + x, 350, 100 + x, 300 + x / 4)
    canvas.drawPath(path)
    canvas.setFont("Helvetica", 6)
    for number in range(3):
        canvas.drawRightString(78, 300 + 20 * number, str(number))
    canvas.drawString(140, 284, "Air flow in litres")
    canvas.rotate(90)
    canvas.drawString(305, -60, "Pressure in bar")
    canvas.rotate(-90)


def ornaments(canvas: Any) -> None:
    """A bullet, an icon, a background, a frame around the text, a rule."""
    canvas.circle(30, 550, 3, fill=1)
    canvas.drawImage(ImageReader(photo()), 40, 500, 15, 15)
    canvas.drawImage(ImageReader(photo()), 0, 0, *SIZE)
    canvas.roundRect(30, 80, 340, 140, 8)
    canvas.line(30, 560, 370, 560)


CELLS = text(*((60 + 100 * at % 300, 446 - 20 * (at // 3), name) for at, name in enumerate("ABC123456")))
FIRST = [shows(photo(), 60, 450, 200, 90), text((60, 545, "Fig. 1. First"))]
SECOND = [shows(photo(), 60, 320, 200, 90), text((60, 415, "Fig. 2. Second"))]
PARTS = [shows(photo(), 40, 400, 120, 80), shows(photo(), 220, 400, 120, 80)]
NAMES = text((60, 386, "(a) Before"), (240, 386, "(b) After"), (130, 368, "Figure 3: Both parts"))
BETWEEN = text((80, 256, "This line is about what the curve above shows"), (80, 243, "and this one as well"))
LABELS = "0 1 2 3 4 Time / s Height"
WORKS = "Figure 4: How it works"
FIGURES: dict[str, tuple[list[Draw], list[tuple[str, str]]]] = {  # what is drawn, and captions and texts of figures
    "caption below": ([curve, text((100, 262, WORKS)), PROSE], [(WORKS, LABELS)]),
    "far below": ([curve, text((100, 234, WORKS))], [(WORKS, LABELS)]),
    "far below other text": ([curve, BETWEEN, text((100, 230, WORKS))], [("", LABELS)]),
    "of a picture": ([curve, text((100, 262, "Picture 4: It works"))], [("Picture 4: It works", LABELS)]),
    "with a hyphen": ([curve, text((100, 262, "Figure 4 - It works"))], [("Figure 4 - It works", LABELS)]),
    "captions above": ([*FIRST, *SECOND], [("Fig. 1. First", ""), ("Fig. 2. Second", "")]),
    "parts in a row": ([*PARTS, NAMES, PROSE], [("Figure 3: Both parts", "(a) Before (b) After")]),
    "diagram without a caption": ([boxes, PROSE], []),
    "diagram": ([boxes, text((120, 380, WORKS)), PROSE], [(WORKS, "read cut index")]),
    "names of axes, sideways ones last": (
        [plot, text((100, 272, WORKS))], [(WORKS, "2 1 0 Air flow in litres Pressure in bar")]
    ),
    "ornaments, backgrounds and frames of text": ([ornaments, PROSE], []),
    "table": ([lambda canvas: canvas.grid([50, 150, 250, 350], [400, 420, 440, 460]), CELLS], []),
    "white bitmap": ([shows(Pillow.new("RGB", (50, 50), "white"), 50, 300, 100, 100)], []),
}  # fmt: skip


@pytest.mark.parametrize(("draws", "found"), FIGURES.values(), ids=FIGURES)
def test_what_is_a_figure_with_its_caption_and_its_text(draws: list[Draw], found: list[tuple[str, str]]) -> None:
    assert [(image.caption, image.text) for _, image in figures(*draws)] == found
