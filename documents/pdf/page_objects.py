"""The objects that a PDF page draws (paths, bitmaps, shadings), also those inside form XObjects, and their places."""

from collections.abc import Iterator
from ctypes import byref, c_float
from itertools import islice
from typing import NamedTuple

from pypdfium2 import PdfiumError, PdfMatrix, PdfObject, PdfPage, raw

from documents.pdf.page import Box, box_of
from documents.pdf.placement import placed_box, placement

DEPTH = 9  # of a page and form XObjects inside each other
MAX_CLIP_SEGMENTS = 1000  # of a path that is clipped to; a longer one is not looked at
MAX_OBJECTS = 100_000  # of a page; later ones are not looked at
_SKIPPED = (raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_FORM)


class PageObject(NamedTuple):
    """An object of a page; only valid while the page is open."""

    item: PdfObject
    # from the coordinates that the object's bounds are given in to those of the page as it is shown
    placed: PdfMatrix

    @property
    def matrix(self) -> PdfMatrix:
        """Where a path's points or a bitmap's unit square are shown."""
        return self.item.get_matrix().multiply(self.placed)


def objects(page: PdfPage) -> Iterator[PageObject]:
    """Objects of a page in the order they are drawn, without text; forms give their contents.

    At most `MAX_OBJECTS` are looked at, so that forms that repeat each other a billion times take bounded time.
    """
    whole = placement(page)
    for item in islice(page.get_objects(max_depth=DEPTH), MAX_OBJECTS):
        if item.type not in _SKIPPED:
            yield PageObject(item, _within(item.container, whole))


def _within(form: PdfObject | None, placed: PdfMatrix) -> PdfMatrix:
    """From a form's coordinates to those of the page as it is shown."""
    return placed if form is None else form.get_matrix().multiply(_within(form.container, placed))


def bounds(found: PageObject) -> Box | None:
    """The upright rectangle around an object as it is shown; None where pdfium knows none."""
    try:
        return placed_box(found.placed, *found.item.get_bounds())
    except PdfiumError:
        return None


def clipped(found: PageObject, box: Box) -> Box | None:
    """The part of an object's box that clipping leaves; None if nothing is left."""
    path = raw.FPDFPageObj_GetClipPath(found.item)
    shown: Box | None = box
    x, y = c_float(), c_float()
    for number in range(raw.FPDFClipPath_CountPaths(path) if path else 0):
        count = raw.FPDFClipPath_CountPathSegments(path, number)
        if not 0 < count <= MAX_CLIP_SEGMENTS:
            continue
        points = []
        for index in range(count):
            raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(path, number, index), byref(x), byref(y))
            points.append(found.placed.on_point(x.value, y.value))
        shown = shown and shown.meet(box_of(points))
    return shown
