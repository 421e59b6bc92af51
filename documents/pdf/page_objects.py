"""The objects that a PDF page draws (paths, bitmaps, shadings), also those inside form XObjects, and their places."""

from collections.abc import Callable, Iterator
from ctypes import byref, c_float
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from documents.pdf.page import Box, box_of
from documents.pdf.placement import PlacementMatrix, placement

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

DEPTH = 8  # of form XObjects inside each other
MAX_CLIP_SEGMENTS = 1000  # of a path that is clipped to; a longer one is not looked at
MAX_OBJECTS = 100_000  # of a page; later ones are not looked at


class PageObject(NamedTuple):
    """An object of a page; only valid while the page is open."""

    kind: int  # raw.FPDF_PAGEOBJ_...
    handle: Any  # raw.FPDF_PAGEOBJECT
    # from the coordinates that the object's bounds are given in to those of the page as it is shown
    placed: PlacementMatrix


def objects(page: "PdfPage") -> Iterator[PageObject]:
    """Objects of a page in the order they are drawn, without text; forms give their contents.

    At most `MAX_OBJECTS` are looked at, so that forms that repeat each other a billion times take bounded time.
    """
    from pypdfium2 import raw

    every = _objects(raw.FPDFPage_GetObject, page.raw, raw.FPDFPage_CountObjects(page), placement(page), 0)
    skipped = (raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_FORM)
    return (item for item in islice(every, MAX_OBJECTS) if item.kind not in skipped)


def _objects(
    get: Callable[..., Any], holder: Any, count: int, placed: PlacementMatrix, depth: int
) -> Iterator[PageObject]:
    """The objects of a page or form, each form followed by its contents."""
    from pypdfium2 import raw

    for at in range(count):
        handle = get(holder, at)
        kind = raw.FPDFPageObj_GetType(handle)
        yield PageObject(kind, handle, placed)
        if kind == raw.FPDF_PAGEOBJ_FORM and depth < DEPTH:
            inner = own_matrix(handle).then(placed)
            yield from _objects(
                raw.FPDFFormObj_GetObject, handle, raw.FPDFFormObj_CountObjects(handle), inner, depth + 1
            )


def own_matrix(handle: Any) -> PlacementMatrix:
    """The matrix of an object: a path's points, a bitmap's unit square and a form's contents go through it."""
    from pypdfium2 import raw

    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(handle, byref(matrix)):
        return PlacementMatrix(1, 0, 0, 1, 0, 0)
    return PlacementMatrix(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)


def bounds(item: PageObject) -> Box | None:
    """The upright rectangle around an object as it is shown; None where pdfium knows none."""
    from pypdfium2 import raw

    left, bottom, right, top = c_float(), c_float(), c_float(), c_float()
    if not raw.FPDFPageObj_GetBounds(item.handle, byref(left), byref(bottom), byref(right), byref(top)):
        return None
    return item.placed.box(left.value, bottom.value, right.value, top.value)


def clipped(item: PageObject, box: Box) -> Box | None:
    """The part of an object's box that clipping leaves; None if nothing is left."""
    from pypdfium2 import raw

    path = raw.FPDFPageObj_GetClipPath(item.handle)
    shown: Box | None = box
    x, y = c_float(), c_float()
    for number in range(raw.FPDFClipPath_CountPaths(path) if path else 0):
        count = raw.FPDFClipPath_CountPathSegments(path, number)
        if not 0 < count <= MAX_CLIP_SEGMENTS:
            continue
        points = []
        for index in range(count):
            raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(path, number, index), byref(x), byref(y))
            points.append(item.placed.point(x.value, y.value))
        shown = shown and shown.meet(box_of(points))
    return shown
