"""What stands on a page of a PDF file, as it was drawn.

Words with their fonts, ruling lines, filled areas, bitmaps and drawings. Coordinates are in points (1/72 inch) from the
top left corner of the page as it is shown, rotation and crop box applied.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle: left, top, right, bottom; left <= right and top <= bottom."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class PageWord:
    """Characters without a blank between them."""

    text: str
    box: Box  # from ascent to descent
    size: float  # of the font, points, as shown
    font: str  # the font's name without a subset's prefix
    bold: bool
    italic: bool
    upright: bool = True  # whether it runs from left to right
    color: tuple[int, int, int] = (0, 0, 0)  # red, green, blue, 0 to 255


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight horizontal or vertical line, or a thin filled rectangle that shows as one."""

    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    """A page.  Words are in the order of the file, which need not be the order of reading."""

    number: int  # from 1
    width: float
    height: float
    words: tuple[PageWord, ...]
    rules: tuple[Rule, ...] = ()
    fills: tuple[Box, ...] = ()  # filled areas that are no rules, e.g. the shade of a table's header
    bitmaps: tuple[Box, ...] = ()
    drawings: tuple[Box, ...] = ()  # clusters of paths that are neither rules nor fills behind text
