"""What a path of a PDF page shows as: ruling lines, filled areas, or parts of a drawing."""

from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint
from typing import Any, NamedTuple

from documents.pdf.page import Box, box_of
from documents.pdf.page_objects import PageObject, own_matrix

THICKEST_RULE = 3.5  # points; a thicker straight line is an area
STRAIGHT = 0.6  # points that the ends of a horizontal or vertical line may differ by
MAX_SEGMENTS = 400  # of a path; a longer one is part of a drawing (a curve of measured values, a map)
MINIMUM_ALPHA = 8  # of 255; less is not seen
WHITE = 250  # of 255, each of red, green and blue; white is not seen on paper
ROUNDED_SHARE = 0.6  # of a rectangle's outline that is straight where its corners are rounded


class Shown(NamedTuple):
    """What a path shows as."""

    rules: list[Box]
    fills: list[Box]
    strokes: list[Box]  # parts of a drawing


Point = tuple[float, float]


class _Part(NamedTuple):
    """A subpath."""

    points: list[Point]  # where its pieces begin and end, with the control points of curves
    lines: list[tuple[Point, Point]]
    curved: bool


class PathReader:
    """Reads paths of a page; keeps the buffers that pdfium writes to, as a page may have 100,000 paths."""

    def __init__(self) -> None:
        from pypdfium2 import raw

        self._raw: Any = raw
        self._x, self._y, self._width = c_float(), c_float(), c_float()
        self._fill, self._stroke = c_int(), c_int()
        self._color = [c_uint() for _ in range(4)]

    def read(self, item: PageObject, around: Box) -> Shown:
        """What a path shows as; nothing where it is invisible.

        Args:
            item: The path.
            around: The upright rectangle around it, as it is shown.
        """
        shown = Shown([], [], [])
        raw, handle = self._raw, item.handle
        raw.FPDFPath_GetDrawMode(handle, byref(self._fill), byref(self._stroke))
        filled = bool(self._fill.value) and self._seen(raw.FPDFPageObj_GetFillColor, handle)
        stroked = bool(self._stroke.value) and self._seen(raw.FPDFPageObj_GetStrokeColor, handle)
        if not filled and not stroked:
            return shown
        count = raw.FPDFPath_CountSegments(handle)
        if count > MAX_SEGMENTS:
            shown.strokes.append(around)
            return shown
        for part in self._parts(item, count):
            if filled:
                _sort_filled(part, shown)
            if stroked:
                _sort_stroked(part, self._stroke_width(item), shown)
        return shown

    def _seen(self, color_of: Callable[..., int], handle: Any) -> bool:
        red, green, blue, alpha = self._color
        if not color_of(handle, byref(red), byref(green), byref(blue), byref(alpha)):
            return True  # a pattern
        return alpha.value >= MINIMUM_ALPHA and min(red.value, green.value, blue.value) < WHITE

    def _stroke_width(self, item: PageObject) -> float:
        self._raw.FPDFPageObj_GetStrokeWidth(item.handle, byref(self._width))
        matrix = own_matrix(item.handle).then(item.placed)
        return max(self._width.value * abs(matrix.a * matrix.d - matrix.b * matrix.c) ** 0.5, 0.1)

    def _parts(self, item: PageObject, count: int) -> list[_Part]:
        raw, x, y = self._raw, self._x, self._y
        at_x, at_y = byref(x), byref(y)
        matrix = own_matrix(item.handle).then(item.placed)
        parts: list[_Part] = []
        for index in range(count):
            segment = raw.FPDFPath_GetPathSegment(item.handle, index)
            raw.FPDFPathSegment_GetPoint(segment, at_x, at_y)
            point = matrix.point(x.value, y.value)
            kind = raw.FPDFPathSegment_GetType(segment)
            if kind == raw.FPDF_SEGMENT_MOVETO or not parts:
                parts.append(_Part([point], [], False))
                continue
            part = parts[-1]
            if kind == raw.FPDF_SEGMENT_LINETO:
                part.lines.append((part.points[-1], point))
            elif not part.curved:
                parts[-1] = part = part._replace(curved=True)
            part.points.append(point)
            if raw.FPDFPathSegment_GetClose(segment) and point != part.points[0]:
                part.lines.append((point, part.points[0]))
        return [part for part in parts if len(part.points) > 1]


def is_rule(box: Box) -> bool:
    """Whether a filled box is thin enough to show as a line."""
    thickness, length = sorted((box.width, box.height))
    return thickness <= THICKEST_RULE and length >= 2 * thickness


def _straight(line: tuple[Point, Point]) -> bool:
    (x1, y1), (x2, y2) = line
    return abs(x1 - x2) <= STRAIGHT or abs(y1 - y2) <= STRAIGHT


def _is_rectangle(part: _Part, box: Box) -> bool:
    """Whether a subpath is an upright rectangle, its corners rounded or not."""
    if not part.curved:
        return all(map(_straight, part.lines))
    on_outline = [
        abs(x1 - x2) + abs(y1 - y2)
        for (x1, y1), (x2, y2) in part.lines
        if (abs(x1 - x2) <= STRAIGHT and min(abs(x1 - box.left), abs(x1 - box.right)) <= STRAIGHT)
        or (abs(y1 - y2) <= STRAIGHT and min(abs(y1 - box.top), abs(y1 - box.bottom)) <= STRAIGHT)
    ]
    outline = 2 * (box.width + box.height)
    return len(on_outline) >= 2 and sum(on_outline) >= ROUNDED_SHARE * outline


def _sort_filled(part: _Part, shown: Shown) -> None:
    box = box_of(part.points)
    if is_rule(box):
        shown.rules.append(box)
    elif _is_rectangle(part, box):
        shown.fills.append(box)
    else:
        shown.strokes.append(box)


def _sort_stroked(part: _Part, width: float, shown: Shown) -> None:
    box = box_of(part.points)
    if not _is_rectangle(part, box):
        shown.strokes.append(box)
        return
    for line in part.lines:
        if _straight(line):
            drawn, half = box_of(line), width / 2
            if drawn.width <= drawn.height:
                stroke = drawn._replace(left=drawn.center - half, right=drawn.center + half)
            else:
                stroke = drawn._replace(top=drawn.middle - half, bottom=drawn.middle + half)
            (shown.rules if width <= THICKEST_RULE else shown.fills).append(stroke)
