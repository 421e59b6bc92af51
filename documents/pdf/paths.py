"""The visible form of a path on a PDF page: ruling lines, filled areas, or parts of a drawing."""

from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint
from typing import NamedTuple

from pypdfium2 import PdfMatrix, PdfObject, raw

from documents.pdf.page import Box, box_of
from documents.pdf.page_objects import PageObject

THICKEST_RULE = 3.5  # points; a thicker straight line is an area
STRAIGHT = 0.6  # points that the ends of a horizontal or vertical line may differ by
MAX_SEGMENTS = 400  # of a path; a longer one is part of a drawing (a curve of measured values, a map)
MINIMUM_ALPHA = 8  # of 255; less is not seen
WHITE = 250  # of 255, each of red, green and blue; white is not seen on paper
ROUNDED_SHARE = 0.6  # of a rectangle's outline that is straight where its corners are rounded


class Shown(NamedTuple):
    """The visible form of a path."""

    rules: list[Box]
    fills: list[Box]
    strokes: list[Box]  # parts of a drawing


Point = tuple[float, float]


class _Part(NamedTuple):
    """A subpath."""

    points: list[Point]  # where its pieces begin and end, with the control points of curves
    lines: list[tuple[Point, Point]]
    curved: bool


def shown_as(path: PageObject, around: Box) -> Shown:
    """The visible form of a path; nothing where it is invisible.

    Args:
        path: The path.
        around: The upright rectangle around it, as it is shown.
    """
    shown = Shown([], [], [])
    fill, stroke, width = c_int(), c_int(), c_float()
    raw.FPDFPath_GetDrawMode(path.item, byref(fill), byref(stroke))
    filled = bool(fill.value) and _seen(raw.FPDFPageObj_GetFillColor, path.item)
    stroked = bool(stroke.value) and _seen(raw.FPDFPageObj_GetStrokeColor, path.item)
    if not filled and not stroked:
        return shown
    count = raw.FPDFPath_CountSegments(path.item)
    if count > MAX_SEGMENTS:
        shown.strokes.append(around)
        return shown
    matrix = path.matrix
    raw.FPDFPageObj_GetStrokeWidth(path.item, byref(width))
    thickness = max(width.value * abs(matrix.a * matrix.d - matrix.b * matrix.c) ** 0.5, 0.1)
    for part in _parts(path.item, count, matrix):
        box = box_of(part.points)
        is_rectangle = _is_rectangle(part, box)
        if filled and is_rule(box):
            shown.rules.append(box)
        elif not is_rectangle:
            shown.strokes.append(box)
        elif filled:
            shown.fills.append(box)
        if stroked and is_rectangle:
            lines = [_thick(line, thickness) for line in part.lines if _straight(line)]
            (shown.rules if thickness <= THICKEST_RULE else shown.fills).extend(lines)
    return shown


def _seen(color_of: Callable[..., int], item: PdfObject) -> bool:
    color = [c_uint() for _ in range(4)]
    if not color_of(item, *map(byref, color)):
        return True  # a pattern
    *rgb, alpha = (part.value for part in color)
    return alpha >= MINIMUM_ALPHA and min(rgb) < WHITE


def _parts(item: PdfObject, count: int, matrix: PdfMatrix) -> list[_Part]:
    x, y = c_float(), c_float()
    at_x, at_y = byref(x), byref(y)
    parts: list[_Part] = []
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(item, index)
        raw.FPDFPathSegment_GetPoint(segment, at_x, at_y)
        point = matrix.on_point(x.value, y.value)
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


def _thick(line: tuple[Point, Point], thickness: float) -> Box:
    """The area that a straight line covers."""
    box, half = box_of(line), thickness / 2
    if box.width <= box.height:
        return box._replace(left=box.center - half, right=box.center + half)
    return box._replace(top=box.middle - half, bottom=box.middle + half)
