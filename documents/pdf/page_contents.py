"""The contents of a page of a PDF file: pieces of lines, tables, figures.

Characters are not kept, so that long files fit in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypdfium2 import PdfPage

from documents.left_out import LeftOut
from documents.pdf.continued import join_continued, without_repeated, words_of
from documents.pdf.figures import find_figures
from documents.pdf.fractions import join_fractions
from documents.pdf.lines import Line, Placed, page_lines
from documents.pdf.read_page import read_page
from documents.pdf.reading import read
from documents.pdf.running_headers import names, running, sentences
from documents.pdf.table_lines import words_in, words_outside
from documents.pdf.tables import find_tables, ruled_figures
from documents.records import Table


@dataclass(frozen=True, slots=True)
class PageContents:
    """A page, in no order."""

    number: int
    height: float  # points
    pieces: tuple[Line, ...]  # of what is neither in a table nor in a figure
    placed: tuple[Placed, ...]  # tables and figures
    labels: tuple[tuple[Line, ...], ...]  # pieces of the text in each of them
    has_bitmaps: bool


def page_contents(opened: PdfPage, number: int, left_out: LeftOut) -> PageContents:
    """The contents of a page.

    Args:
        opened: The page as pdfium opened it.
        number: Its number in the file, from 1.
        left_out: Gets what is left out or moved.
    """
    page = join_fractions(read_page(opened, number, left_out))
    tables = find_tables(page)
    drawn = ruled_figures(page, tables)
    page = replace(page, drawings=(*page.drawings, *drawn))
    placed = [Placed(table, box, number) for box, table in tables if box not in drawn]
    placed += [Placed(image, box, number) for box, image in find_figures(opened, page, [item.box for item in placed])]
    for item in placed:
        left_out.text("captions put beside their tables and figures", item.content.caption)
        if not isinstance(item.content, Table):
            left_out.text("text drawn in figures put beside them", item.content.text)
    labels = tuple(tuple(page_lines(words_in(page.words, item.box), number, page.rules)) for item in placed)
    pieces = page_lines(words_outside(page.words, [item.box for item in placed]), number, page.rules)
    return PageContents(number, page.height, tuple(pieces), tuple(placed), labels, bool(page.bitmaps))


def in_reading_order(pages: Sequence[PageContents], left_out: LeftOut) -> list[Line | Placed]:
    """The contents of a document's pages in reading order, without running headers, footers and logos.

    Text over a picture that is left out as a logo stays, unless it is a running header.

    Args:
        pages: From the first one on.
        left_out: Gets what is left out.
    """
    kept = without_repeated({page.number: page.placed for page in pages})
    pieces: list[Line] = []
    for page in pages:
        pieces += page.pieces
        for item, inside in zip(page.placed, page.labels, strict=True):
            if item not in kept[page.number]:
                pieces += inside
                left_out.text("repeated tables and pictures left out", words_of(item) or "picture")
    seen: dict[str, int] = {}  # turned texts, and the first page of each
    runs = running(pieces, {page.number: page.height for page in pages})
    once = sentences(pieces, runs)
    by_page: dict[int, list[Line]] = {page.number: [] for page in pages}
    for at, piece in enumerate(pieces):
        if at in once:
            by_page[piece.page].append(replace(piece, beside="running"))
        elif at in runs:
            named = "running headers and footers" if names(piece) else "page numbers"
            left_out.text(f"{named} left out", piece.text)
        elif not piece.upright and seen.setdefault(piece.text, piece.page) != piece.page:
            left_out.text("repeated turned text left out", piece.text)
        else:
            by_page[piece.page].append(piece)
    in_order = (item for page in pages for item in read(by_page[page.number], kept[page.number]))
    return join_continued(in_order, left_out)
