"""A table of the words and ruling lines in an area of a page: its columns, its rows and what spans several of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from documents.pdf.page import Box, PageWord
from documents.pdf.table_columns import column_at, separators
from documents.pdf.table_lines import font_size, lines_of
from documents.pdf.table_rows import TableRow, bands, rows_of
from documents.pdf.table_spans import FULL_SHARE, NEAR, Cells
from documents.pdf.tabular import is_tabular
from documents.records import Table

BORDER_SHARE = 0.2  # of a table's side at least that rules at one place cover if they divide rows or columns
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
    edges = [(rule.middle, rule.width) for rule in area.horizontals]
    edges += [(height, fill.width) for fill in area.fills for height in (fill.top, fill.bottom)]
    heights = _borders(edges, box.top, box.bottom, box.width)
    found = bands(lines, [height for height, _ in heights], box)
    edges = [(rule.center, rule.height) for rule in area.verticals]
    ruled = [at for at, _ in _borders(edges, box.left, box.right, box.height)]
    filled_columns = sorted({column_at(word.box.center, ruled) for word in upright})
    ruled = [ruled[column] for column in filled_columns[:-1]]  # the others are frames in frames
    full_grid = bool(ruled) and len(found) > 2
    borders = list(ruled)
    for left, right in pairwise([box.left, *ruled, box.right]):
        borders += separators(lines, left, right, size, GRID_GAP if full_grid else None)
    borders.sort()
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
    return Table(tuple(texts), _header_rows(cells, full_heights, full_grid, area.fills))


def _borders(edges: Iterable[tuple[float, float]], start: float, end: float, side: float) -> list[tuple[float, float]]:
    """Where ruling lines inside an area stand that divide rows or columns, and the share of its side that they cover.

    Args:
        edges: The place and the length of each line.
        start: Where the area begins.
        end: Where it ends.
        side: Its side along the lines, points.
    """
    borders: list[tuple[float, float]] = []
    for at, length in sorted(edges):
        if not start + NEAR < at < end - NEAR:
            continue
        share = length / side
        if borders and at - borders[-1][0] <= NEAR:
            borders[-1] = (borders[-1][0], borders[-1][1] + share)
        else:
            borders.append((at, share))
    return [(at, share) for at, share in borders if share >= BORDER_SHARE]


def _header_rows(cells: Cells, full_heights: Sequence[float], full_grid: bool, fills: Sequence[Box]) -> int:
    """Rows above the first rule across the table.

    In a grid the rows at the top that stand out by boldness or shade, at least one.
    """
    rows = cells.rows
    if not full_grid:
        first = next((height for height in full_heights if height > rows[0].top + NEAR), None)
        above = sum(row.bottom <= first + NEAR for row in rows) if first is not None else 1
        return above if 1 <= above <= MAX_HEADER_ROWS and above < len(rows) else 1
    count = next((index for index, row in enumerate(rows) if not _stands_out(row, fills)), 0)
    if 1 <= count <= MAX_HEADER_ROWS:
        return count
    return 2 if cells.spans_columns(0) and len(rows) > 2 else 1


def _stands_out(row: TableRow, fills: Sequence[Box]) -> bool:
    words = [word for line in row.lines for word in line]
    return all(word.bold for word in words) or all(any(fill.holds(word.box) for fill in fills) for word in words)
