"""Tables of a page: ruled grids, tables between horizontal rules, shaded rows, and words in columns; with captions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from documents.pdf.aligned_tables import aligned
from documents.pdf.captions import assign_captions
from documents.pdf.clusters import around
from documents.pdf.page import Box, Page
from documents.pdf.ruled_tables import grids, lined
from documents.pdf.shaded_tables import shaded
from documents.pdf.table_lines import words_in
from documents.pdf.table_reader import Area, read_table
from documents.records import Table


def find_tables(page: Page) -> list[tuple[Box, Table]]:
    """The tables of a page and where they are, with their captions, from the top.

    All words in a table's box are its cells' or its caption's.
    """
    found: list[tuple[Box, Table]] = []
    _read(grids(page), page, found)
    _read(lined(page, [box for box, _ in found]), page, found)
    _read(shaded(page, [box for box, _ in found]), page, found)
    _read(aligned(page, [box for box, _ in found]), page, found)
    captions = assign_captions("table", [box for box, _ in found], page.words)
    named = [
        (around([box, caption.box]), replace(table, caption=caption.text)) if caption else (box, table)
        for (box, table), caption in zip(found, captions, strict=True)
    ]
    return sorted(((box, replace(table, page=page.number)) for box, table in named), key=lambda pair: pair[0][1::-1])


def ruled_figures(page: Page, tables: Sequence[tuple[Box, Table]]) -> list[Box]:
    """Where drawings of ruled boxes were read as tables.

    Those without a table's caption to which the caption of a figure belongs.

    Args:
        page: The page.
        tables: From `find_tables`.
    """
    boxes = [box for box, _ in tables]
    captions = assign_captions("figure", [*boxes, *page.bitmaps, *page.drawings], page.words)
    return [box for (box, table), caption in zip(tables, captions, strict=False) if caption and not table.caption]


def _read(areas: Iterable[Area], page: Page, found: list[tuple[Box, Table]]) -> None:
    for area in areas:
        if any(area.box.overlap(box) > 0 for box, _ in found):
            continue
        table = read_table(area, words_in(page.words, area.box))
        if table:
            found.append((area.box, table))
