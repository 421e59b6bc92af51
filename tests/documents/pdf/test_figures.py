"""Figures of real PDF pages: bitmaps of all kinds, drawings, captions, labels, logos; and what is no figure."""

import io
import math
from typing import Any

import pytest
from PIL import Image as Pillow
from reportlab.lib.utils import ImageReader

from documents.pdf.figures import find_figures
from documents.pdf.page import Box
from documents.pdf.tables import find_tables
from documents.records import Image
from tests.helpers.hand_made_pages import drawn_pages
from tests.helpers.pdf_pages import Draw, pdf

SIZE = (400.0, 600.0)


def figures(*draws: Draw) -> list[list[tuple[Box, Image]]]:
    """The figures of a document's pages."""
    found = []
    for opened, page in drawn_pages(pdf(*draws, size=SIZE)):
        found.append(find_figures(opened, page, [box for box, _ in find_tables(page)]))
    return found


def photo(mode: str = "RGB", width: int = 120, height: int = 60) -> Pillow.Image:
    """A picture with a color of its own in each corner."""
    picture = Pillow.new("RGB", (width, height), "white")
    for x, y, color in ((0, 0, "red"), (1, 0, "green"), (0, 1, "blue")):
        picture.paste(color, (x * width // 2, y * height // 2, (x + 1) * width // 2, (y + 1) * height // 2))
    return picture.convert(mode)


def jpeg(picture: Pillow.Image) -> io.BytesIO:
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=90)
    data.seek(0)
    return data


def opened(image: Image) -> Pillow.Image:
    return Pillow.open(io.BytesIO(image.data))


def corners(picture: Pillow.Image) -> list[Any]:
    """The colors in three corners."""
    width, height = picture.size
    places = [(width // 4, height // 4), (3 * width // 4, height // 4), (width // 4, 3 * height // 4)]
    return [picture.convert("RGB").getpixel(place) for place in places]


def near(colors: list[Any]) -> list[Any]:
    return [pytest.approx(color, abs=30) for color in colors]


CORNERS = [(255, 0, 0), (0, 128, 0), (0, 0, 255)]


def text(*lines: tuple[float, float, str]) -> Draw:
    """Draws lines of text: left, bottom, text."""

    def draw(canvas: Any) -> None:
        canvas.setFont("Helvetica", 9)
        for left, bottom, line in lines:
            canvas.drawString(left, bottom, line)

    return draw


def shows(picture: Any, left: float, bottom: float, width: float, height: float, **options: Any) -> Draw:
    return lambda canvas: canvas.drawImage(ImageReader(picture), left, bottom, width, height, **options)


def both(*draws: Draw) -> Draw:
    def draw(canvas: Any) -> None:
        for one in draws:
            one(canvas)

    return draw


def curve(canvas: Any, left: float = 80, bottom: float = 300) -> None:
    """A plot: axes, a wave, names of the axes."""
    canvas.setFont("Helvetica", 8)
    canvas.rect(left, bottom, 200, 120)
    path = canvas.beginPath()
    path.moveTo(left, bottom + 60)
    for x in range(1, 201, 4):
        path.lineTo(left + x, bottom + 60 + 50 * math.sin(x / 20))
    canvas.drawPath(path)
    for tick in range(5):
        canvas.drawString(left + 45 * tick, bottom - 11, str(tick))
    canvas.drawString(left + 80, bottom - 22, "Time / s")
    canvas.saveState()
    canvas.translate(left - 6, bottom + 30)
    canvas.rotate(90)
    canvas.drawString(0, 0, "Height")
    canvas.restoreState()


PROSE = text(*((40, 200 - 12 * n, "and the reader is told what the picture above is to show here") for n in range(9)))


def test_a_jpeg_is_taken_out_as_it_is() -> None:
    data = jpeg(photo())
    (((box, image),),) = figures(shows(data, 50, 300, 240, 120))
    assert image.suffix == ".jpg"
    assert image.data == data.getvalue()
    assert box == pytest.approx((50, 180, 290, 300), abs=1)
    assert (image.caption, image.text, image.page) == ("", "", 1)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK"])
def test_bitmaps_without_jpeg_data_become_png(mode: str) -> None:
    (((_, image),),) = figures(shows(photo(mode), 50, 300, 240, 120, mask="auto"))
    assert image.suffix == ".png"
    assert opened(image).size == pytest.approx((120, 60), abs=3)
    if mode not in ("1", "L", "CMYK"):
        assert corners(opened(image)) == near(CORNERS)


def test_a_cmyk_jpeg_becomes_png_with_its_colors_as_shown() -> None:
    (((_, image),),) = figures(shows(jpeg(photo("CMYK")), 50, 300, 240, 120))
    assert image.suffix == ".png"
    red, green, blue = corners(opened(image))
    assert red[0] > max(red[1:])
    assert green[1] > max(green[0], green[2])
    assert blue[2] > max(blue[:2])


def test_what_a_mask_hides_is_white() -> None:
    picture = photo("RGBA")
    picture.paste((0, 0, 0, 0), (0, 0, 60, 30))
    (((_, image),),) = figures(shows(picture, 50, 300, 240, 120, mask="auto"))
    assert corners(opened(image)) == near([(255, 255, 255), *CORNERS[1:]])


def test_a_turned_bitmap_is_as_shown() -> None:
    def draw(canvas: Any) -> None:
        canvas.translate(300, 200)
        canvas.rotate(90)
        canvas.drawImage(ImageReader(jpeg(photo())), 0, 0, 240, 120)

    (((_, image),),) = figures(draw)
    assert image.suffix == ".png"
    assert corners(opened(image)) == near(corners(photo().rotate(90, expand=True)))


def test_a_huge_bitmap_is_scaled_down() -> None:
    (((_, image),),) = figures(shows(jpeg(photo(width=6000, height=3000)), 50, 300, 300, 150))
    assert max(opened(image).size) <= 2010


def test_a_drawing_is_rendered_with_its_labels_and_without_its_caption() -> None:
    (((box, image),),) = figures(both(curve, text((100, 262, "Figure 2: Height of the wave")), PROSE))
    assert image.suffix == ".png"
    assert box.top == pytest.approx(180, abs=3)
    assert box.bottom == pytest.approx(600 - 260, abs=4)
    assert opened(image).size[0] >= 2 * 200


def boxes(canvas: Any) -> None:
    """A diagram."""
    for left, name in ((60, "read"), (150, "cut"), (240, "index")):
        canvas.rect(left, 400, 60, 40)
        text((left + 10, 416, name))(canvas)
    canvas.line(120, 420, 150, 420)
    canvas.line(210, 420, 240, 420)


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


def table(canvas: Any) -> None:
    canvas.grid([50, 150, 250, 350], [400, 420, 440, 460])
    text(*((60 + 100 * at % 300, 446 - 20 * (at // 3), name) for at, name in enumerate("ABC123456")))(canvas)


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
    "table": ([table], []),
    "white bitmap": ([shows(Pillow.new("RGB", (50, 50), "white"), 50, 300, 100, 100)], []),
}  # fmt: skip


@pytest.mark.parametrize(("draws", "found"), FIGURES.values(), ids=FIGURES)
def test_what_is_a_figure_with_its_caption_and_its_text(draws: list[Draw], found: list[tuple[str, str]]) -> None:
    assert [(image.caption, image.text) for _, image in figures(both(*draws))[0]] == found
