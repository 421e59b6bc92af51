"""A table of the words and ruling lines in an area of a page: its columns, its rows and what spans several of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from documents.pdf.page import Box, PageWord
from documents.pdf.table_columns import rule_borders, separators
from documents.pdf.table_lines import Line, center, font_size, lines_of, middle
from documents.pdf.table_rows import Band, TableRow, bands, rows_of
from documents.pdf.table_spans import FULL_SHARE, NEAR, Cells
from documents.pdf.tabular import is_tabular
from documents.records import Table

BORDER_SHARE = 0.2  # of a table's width at least that rules at one height cover if they divide rows
FILLED_SHARE = 0.3  # of a table's cells at least that are not empty
MAX_HEADER_ROWS = 4
GRID_GAP = 1.5  # font sizes between columns that no rule divides in a table where rules divide others and all rows


@dataclass(frozen=True, slots=True)
class Area:
    """Where a table is supposed to be, with the rules and fills in it."""

    box: Box
    horizontals: tuple[Box, ...] = ()
    verticals: tuple[Box, ...] = ()
    fills: tuple[Box, ...] = ()
    striped: bool = False  # whether every second row is shaded


def words_in(words: Sequence[PageWord], box: Box) -> list[PageWord]:
    """Words whose middle is in a box."""
    return [
        word
        for word in words
        if box.left <= center(word.box) <= box.right and box.top <= middle(word.box) <= box.bottom
    ]


def read_table(area: Area, words: Sequence[PageWord]) -> Table | None:
    """The table in an area; None where its words are no table: one column or row, or mostly empty cells.

    Args:
        area: The area with its rules.
        words: The words in it.
    """
    upright = [word for word in words if word.upright]
    if not upright:
        return None
    size, box = font_size(upright), area.box
    lines = lines_of(upright)
    heights = _heights(area)
    found = bands(lines, [height for height, _ in heights], box)
    ruled = [at for at in rule_borders(area.verticals, box.bottom - box.top) if box.left + NEAR < at < box.right - NEAR]
    ruled = _between_words(ruled, upright)
    full_grid = bool(ruled) and len(found) > 2
    borders = _borders(lines, ruled, box, size, GRID_GAP if full_grid else None)
    rows = rows_of(found, borders, full_grid or area.striped)
    if not borders or len(rows) < 2 or not (ruled or is_tabular(lines, borders)):
        return None
    cells = Cells(rows, borders, box)
    cells.add(word for word in words if not word.upright)
    cells.join_across(ruled, area.verticals)
    cells.join_below(area.horizontals, full_grid)
    if not cells.are_rectangles():
        return None
    kept = cells.columns_with_text()
    texts = [tuple(row[column] for column in kept) for row in cells.texts()]
    filled = sum(bool(text) for row in texts for text in row)
    if len(kept) < 2 or filled < FILLED_SHARE * len(texts) * len(kept):
        return None
    full_heights = [height for height, share in heights if share >= FULL_SHARE]
    return Table(tuple(texts), _header_rows(cells, rows, found, full_heights, full_grid, area.fills))


def _heights(area: Area) -> list[tuple[float, float]]:
    """Where horizontal borders of rows are, and the share of the table's width that they cover; from the top."""
    box, width = area.box, max(area.box.right - area.box.left, 1.0)
    edges = [(middle(rule), rule.right - rule.left) for rule in area.horizontals]
    edges += [(height, fill.right - fill.left) for fill in area.fills for height in (fill.top, fill.bottom)]
    heights: list[tuple[float, float]] = []
    for height, length in sorted(edges):
        if not box.top + NEAR < height < box.bottom - NEAR:
            continue
        if heights and height - heights[-1][0] <= NEAR:
            heights[-1] = (heights[-1][0], heights[-1][1] + length / width)
        else:
            heights.append((height, length / width))
    return [(height, share) for height, share in heights if share >= BORDER_SHARE]


def _borders(lines: Sequence[Line], ruled: Sequence[float], box: Box, size: float, gap: float | None) -> list[float]:
    """Where columns end: at vertical rules, and between them where the text leaves strips free."""
    borders = list(ruled)
    for left, right in pairwise([box.left, *ruled, box.right]):
        borders += separators(lines, left, right, size, gap)
    return sorted(borders)


def _between_words(ruled: Sequence[float], words: Sequence[PageWord]) -> list[float]:
    """Those of the vertical rules that have words on both sides before the next one.

    The others are frames in frames.
    """
    middles = sorted(center(word.box) for word in words)
    kept: list[float] = []
    for at in ruled:
        if any((kept[-1] if kept else 0.0) < place < at for place in middles):
            kept.append(at)
    while kept and middles[-1] < kept[-1]:
        kept.pop()
    return kept


def _header_rows(
    cells: Cells,
    rows: Sequence[TableRow],
    found: Sequence[Band],
    full_heights: Sequence[float],
    full_grid: bool,
    fills: Sequence[Box],
) -> int:
    """Rows above the first rule across the table.

    In a grid the rows at the top that stand out by boldness or shade, at least one.
    """
    if not full_grid:
        first = next((height for height in full_heights if height > rows[0].top + NEAR), None)
        above = sum(row.bottom <= first + NEAR for row in rows) if first is not None else 1
        return above if 1 <= above <= MAX_HEADER_ROWS and above < len(rows) else 1
    marked = [_stands_out(row, fills) for row in rows]
    count = next((index for index, stands_out in enumerate(marked) if not stands_out), 0)
    if 1 <= count <= MAX_HEADER_ROWS:
        return count
    return 2 if cells.spans_columns(0) and len(rows) > 2 else 1


def _stands_out(row: TableRow, fills: Sequence[Box]) -> bool:
    words = [word for line in row.lines for word in line]
    if all(word.bold for word in words):
        return True
    return all(
        any(
            fill.left <= center(word.box) <= fill.right and fill.top <= middle(word.box) <= fill.bottom
            for fill in fills
        )
        for word in words
    )
