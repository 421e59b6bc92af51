"""The contents of a page of a PDF file, as drawn.

Words with their fonts, ruling lines, filled areas, bitmaps and drawings. Coordinates are in points (1/72 inch) from the
top left corner of the page as it is shown, rotation and crop box applied.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle: left, top, right, bottom; left <= right and top <= bottom."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Points."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Points."""
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Square points."""
        return self.width * self.height

    @property
    def center(self) -> float:
        """Its place between left and right."""
        return (self.left + self.right) / 2

    @property
    def middle(self) -> float:
        """Its place between top and bottom."""
        return (self.top + self.bottom) / 2

    def contains(self, inner: "Box", slack: float = 2.0) -> bool:
        """Whether a box lies within this one, up to `slack` points."""
        return (
            inner.left >= self.left - slack
            and inner.right <= self.right + slack
            and inner.top >= self.top - slack
            and inner.bottom <= self.bottom + slack
        )

    def holds(self, other: "Box") -> bool:
        """Whether the middle of a box is in this one."""
        return self.left <= other.center <= self.right and self.top <= other.middle <= self.bottom

    def meet(self, other: "Box") -> "Box | None":
        """The intersection of two boxes, which may be a line or a point; None if it is empty."""
        left, right = max(self.left, other.left), min(self.right, other.right)
        top, bottom = max(self.top, other.top), min(self.bottom, other.bottom)
        return Box(left, top, right, bottom) if left <= right and top <= bottom else None

    def shared_height(self, other: "Box") -> float:
        """Points that two boxes stand beside each other; negative if one is below the other."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def overlap(self, other: "Box") -> float:
        """Square points that two boxes share."""
        shared = self.meet(other)
        return shared.area if shared else 0.0


def box_of(points: Iterable[tuple[float, float]]) -> Box:
    """The smallest upright rectangle around one or more points."""
    xs, ys = zip(*points, strict=True)
    return Box(min(xs), min(ys), max(xs), max(ys))


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
