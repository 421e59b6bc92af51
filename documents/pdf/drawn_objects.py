"""What a PDF page draws besides text: ruling lines, filled areas, bitmaps and drawings, for the record of the page."""

from pypdfium2 import PdfPage, raw

from documents.pdf.clusters import joined
from documents.pdf.drawings import REACH, take_in_frames
from documents.pdf.page import Box, Rule
from documents.pdf.page_objects import bounds, clipped, objects
from documents.pdf.paths import is_rule, shown_as
from documents.pdf.rules import merge_rules

MAX_PATHS = 10_000  # of a page that are read point by point; of further ones only the rectangle around them is
LARGE_SHARE = 0.1  # of the page's area; of a larger path it is looked at what clipping leaves of it
BACKGROUND_SHARE = 0.8  # of the page's area; a larger fill or drawing is the page's background


def drawn_objects(page: PdfPage) -> tuple[tuple[Rule, ...], tuple[Box, ...], tuple[Box, ...], tuple[Box, ...]]:
    """Rules, fills, bitmaps and drawings of a page, for `documents.pdf.page.Page`.

    Pieces of a line are merged, what cannot be seen is left out, and lines and areas that belong to a drawing (axes,
    bars) are in its box.
    """
    sheet = Box(0.0, 0.0, *page.get_size())
    rules: list[Box] = []
    fills: list[Box] = []
    strokes: list[Box] = []
    bitmaps: list[Box] = []
    paths = 0
    for item in objects(page):
        around = bounds(item)
        visible = around.meet(sheet) if around else None
        if around is None or visible is None:
            continue
        if item.item.type != raw.FPDF_PAGEOBJ_PATH or visible.area > LARGE_SHARE * sheet.area:
            visible = clipped(item, visible)
            if visible is None:
                continue
        if item.item.type == raw.FPDF_PAGEOBJ_IMAGE:
            bitmaps.append(visible)
        elif item.item.type == raw.FPDF_PAGEOBJ_PATH:
            paths += 1
            if paths <= MAX_PATHS:
                shown = shown_as(item, around)
                for found, parts in zip((rules, fills, strokes), shown, strict=True):
                    found += [part for box in parts if (part := box.meet(visible))]
            else:
                (rules if is_rule(visible) else strokes).append(visible)
        else:
            fills.append(visible)  # a shading
    limit = BACKGROUND_SHARE * sheet.area
    fills = [box for box in fills if box.area < limit]
    drawn = joined([box for box in strokes if box.area < limit], REACH)
    kept_rules, kept_fills, drawings = take_in_frames(merge_rules(rules), fills, drawn)
    return kept_rules, kept_fills, tuple(bitmaps), drawings
