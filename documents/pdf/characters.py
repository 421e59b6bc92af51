"""Characters of a PDF page as pdfium reports them, in the order of the file, with the style of their text object."""

from collections.abc import Iterator
from ctypes import byref, c_double, c_uint, c_void_p, cast
from dataclasses import dataclass
from typing import NamedTuple

from pypdfium2 import PdfMatrix, PdfTextPage, raw

from documents.pdf.fonts import base_name, is_bold, is_italic
from documents.pdf.page import Box
from documents.pdf.placement import placed_box

MAX_CHARACTERS = 200_000  # of a page; a dense one has 10,000
_INVISIBLE, _STROKED = (3, 7), (2, 6)  # text rendering modes (PDF 32000-1, table 106)
_FORCE_BOLD = 1 << 18  # font descriptor flag (table 123)


@dataclass(frozen=True, slots=True)
class CharacterStyle:
    """How a text object's characters are drawn."""

    font: str
    size: float  # points, as shown
    bold: bool
    italic: bool
    turn: int | None  # degrees clockwise that would make it run from left to right; None if it is slanted
    visible: bool
    color: tuple[int, int, int]


class Character(NamedTuple):
    """A character; its box is the glyph's ink in the page's own coordinates: left, right, bottom, top."""

    position: int  # in pdfium's text page
    text: str
    left: float
    right: float
    bottom: float
    top: float
    style: CharacterStyle
    room: Box  # its place in its line, with the space around its ink; as the page is shown
    blank: int  # before it: 0 none, 1 one that pdfium has made, 2 one of the file


def characters(text: PdfTextPage, placed: PdfMatrix) -> Iterator[Character]:
    """Characters of a page without blanks and line breaks.

    One pdfium call costs about 1 µs, so each character has four; its style is asked for once per text object.

    Args:
        text: The page's text.
        placed: From the page's own coordinates to those it is shown with.
    """
    page = text.raw
    edges, room = [c_double() for _ in range(4)], raw.FS_RECTF()
    left, right, bottom, top = edges
    references = [byref(edge) for edge in edges]
    unicode_of, object_of, box_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetTextObject, raw.FPDFText_GetCharBox
    styles: dict[int | None, CharacterStyle] = {}
    blank = 0
    for index in range(min(text.count_chars(), MAX_CHARACTERS)):
        code = unicode_of(page, index)
        is_blank = (code <= 0x20 and code != 0x02) or code == 0xA0
        handle = None if is_blank else cast(object_of(page, index), c_void_p).value
        if handle is None:  # a blank, or made by pdfium: a hyphen at a line's end has its object
            blank = max(blank, 1 if raw.FPDFText_IsGenerated(page, index) else 2)
            continue
        if handle not in styles:
            styles[handle] = _style(text, index, placed)
        box_of(page, index, *references)
        raw.FPDFText_GetLooseCharBox(page, index, byref(room))
        letter = "-" if code == 0x02 else chr(code) if code < 0x110000 else "\ufffd"
        place = placed_box(placed, room.left, room.bottom, room.right, room.top)
        ink = (left.value, right.value, bottom.value, top.value)
        yield Character(index, letter, *ink, styles[handle], place, blank)
        blank = 0


def origin(text: PdfTextPage, index: int) -> tuple[float, float]:
    """Where a character's baseline begins, in the page's own coordinates."""
    x, y = c_double(), c_double()
    raw.FPDFText_GetCharOrigin(text, index, byref(x), byref(y))
    return x.value, y.value


def _style(text: PdfTextPage, index: int, placed: PdfMatrix) -> CharacterStyle:
    """The style of a character's text object."""
    item = text.get_textobj(index)
    font = item.get_font()
    name = base_name(font.get_base_name())
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text, index, byref(matrix))
    drawn = PdfMatrix(matrix.a, matrix.b, matrix.c, matrix.d).multiply(placed)
    size = raw.FPDFText_GetFontSize(text, index) * (drawn.c**2 + drawn.d**2) ** 0.5
    mode = raw.FPDFTextObj_GetTextRenderMode(item)
    color = [c_uint() for _ in range(4)]
    known = raw.FPDFText_GetFillColor(text, index, *(byref(part) for part in color))
    red, green, blue, opacity = (part.value for part in color) if known else (0, 0, 0, 255)
    return CharacterStyle(
        font=name,
        size=size,
        bold=is_bold(name) or mode in _STROKED or bool(raw.FPDFFont_GetFlags(font) & _FORCE_BOLD),
        italic=is_italic(name) or abs(_slant(drawn)) > 0.1,
        turn=_turn(drawn.a, drawn.b),
        visible=mode not in _INVISIBLE and opacity > 0,
        color=(red, green, blue),
    )


def _turn(right: float, down: float) -> int | None:
    """By how much a text that runs in a direction must be turned to run to the right."""
    if min(abs(right), abs(down)) > 0.1 * max(abs(right), abs(down)):
        return None
    return (0 if right > 0 else 180) if abs(right) > abs(down) else (270 if down > 0 else 90)


def _slant(drawn: PdfMatrix) -> float:
    """How far an upright text's ascenders lean, relative to their height.

    Fonts without an italic shape are slanted so.
    """
    return drawn.c / drawn.d if drawn.d and abs(drawn.b) <= 0.1 * abs(drawn.a) else 0.0
