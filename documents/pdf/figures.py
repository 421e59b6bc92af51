"""Figures of a page as images, with their captions and what is written in them."""

from collections.abc import Sequence

from pypdfium2 import PdfPage

from documents.pdf.clusters import around, fragments
from documents.pdf.figure_areas import PROSE_WORDS, FigureArea, figure_areas
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.pictures import Pictures
from documents.pdf.table_lines import cell_text, lines_of, words_in
from documents.records import Image

MAX_FIGURES = 50  # of a page


def find_figures(opened: PdfPage, page: Page, taken: Sequence[Box] = ()) -> list[tuple[Box, Image]]:
    """The figures of a page and where they are, with their captions, from the top.

    Words in a figure's box are in its caption or its text.

    Args:
        opened: The page as pdfium opened it.
        page: Its record.
        taken: Areas that are something else: the page's tables.
    """
    areas = figure_areas(page, taken)[:MAX_FIGURES]
    if not areas:
        return []
    pictures = Pictures(opened)
    found: list[tuple[Box, Image]] = []
    for area in areas:
        picture = pictures.bitmap(area.box) if area.bitmap else pictures.rendered(area.box)
        if picture is None:
            continue
        caption = area.caption.text if area.caption else ""
        box = around([area.box, area.caption.box]) if area.caption else area.box
        written = [*words_in(page.words, area.box), *_names_of_axes(page, area)]
        found.append((box, Image(*picture, caption, _text(written), page.number)))
    return found


def _names_of_axes(page: Page, area: FigureArea) -> list[PageWord]:
    """The text between a figure and its caption, if it is short."""
    if area.caption is None:
        return []
    box, named = area.box, area.caption.box
    room = box._replace(top=min(box.bottom, named.bottom), bottom=max(box.top, named.top))
    pieces = (part for line in lines_of(words_in(page.words, room)) for part in fragments(line))
    return [word for part in pieces if len(part) < PROSE_WORDS for word in part]


def _text(words: Sequence[PageWord]) -> str:
    """The text in a figure.

    From the top, then what is set sideways, such as the name of an axis, in the order of the file.
    """
    level = cell_text(word for word in words if word.upright)
    return " ".join([level, *(word.text for word in words if not word.upright)]).strip()
