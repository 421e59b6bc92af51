"""Which lines of text make a row of a table.

Lines between two rules, or lines that go on in a cell of the row above.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median, median_high
from typing import NamedTuple

from documents.pdf.clusters import around, runs
from documents.pdf.page import Box
from documents.pdf.table_columns import cells_of
from documents.pdf.table_lines import Line

LOOSER = 1.3  # a gap between rows, as a multiple of the usual one between lines, that tells rows apart
# a gap between lines, as a multiple of the usual one, that is within a row: parts of a symbol, a formula
STACKED = 0.65
CONTINUED_SHARE = 0.5  # of the columns at most that a line goes on in if it continues the row above
WRAPPED_EMS = 5.0  # width in font sizes of a line that may have been wrapped
HEADER_LINES = 4  # of one row that names the columns, at most
ROW_SHARE = 0.75  # of the columns that the lines of a ruled cell fill if each is a row of its own


class TableRow(NamedTuple):
    """A row of a table, or a band: what stands between two horizontal rules that are next to each other."""

    top: float
    bottom: float
    lines: list[Line]
    band: int  # which band it is, or is in


def bands(lines: Sequence[Line], heights: Sequence[float], box: Box) -> list[TableRow]:
    """Lines between horizontal borders; those without lines are left out.

    Args:
        lines: From the top.
        heights: Where horizontal borders are, from the top of the page, sorted.
        box: The table's area.
    """
    found: list[TableRow] = []
    for top, bottom in pairwise([box.top, *heights, box.bottom]):
        inside = [line for line in lines if top < median_high(word.box.middle for word in line) <= bottom]
        if inside:
            found.append(TableRow(top, bottom, inside, len(found)))
    return found


def rows_of(all_bands: Sequence[TableRow], borders: Sequence[float], divided: bool) -> list[TableRow]:
    """The rows of a table.

    Args:
        all_bands: From the top.
        borders: Where columns end.
        divided: Whether rules or shades divide all rows.
    """
    rows: list[TableRow] = []
    for band in all_bands:
        if divided:
            parts = _lines_of_grid(band.lines, borders)
        elif band.band == 0 and len(all_bands) > 1 and len(band.lines) <= HEADER_LINES:
            parts = _header(band.lines, borders)
        else:
            parts = join_lines(band.lines, borders)
        if len(parts) == 1:
            rows.append(band)
        else:
            boxes = [around(word.box for line in part for word in line) for part in parts]
            rows += [TableRow(box.top, box.bottom, part, band.band) for box, part in zip(boxes, parts, strict=True)]
    return rows


def join_lines(lines: Sequence[Line], borders: Sequence[float]) -> list[list[Line]]:
    """Lines of a table's body in groups, one a row: a cell may hold several lines of text.

    A line goes on with the row above if it has words in few columns, all of which have words in that row, and these
    cells were full: the line's first word had no room there.

    Args:
        lines: From the top.
        borders: Where columns end.
    """
    if found := records(lines, borders):
        return found
    columns = [cells_of(line, borders) for line in lines]
    pitches = _pitches(lines)
    usual = median(pitches) if pitches else 0.0
    ends = _ends(columns, len(borders) + 1)
    rows: list[list[Line]] = []
    in_row: set[int] = set()
    for index, line in enumerate(lines):
        cells = columns[index]
        stacked = bool(rows) and _top(line) - _top(rows[-1][0]) < STACKED * usual and set(cells) <= in_row
        near = bool(rows) and pitches[index - 1] <= LOOSER * usual
        if stacked or (near and _goes_on(columns[index - 1], cells, in_row, ends)):
            rows[-1].append(line)
        else:
            rows.append([line])
            in_row = set()
        in_row |= set(cells)
    return rows


def records(lines: Sequence[Line], borders: Sequence[float]) -> list[list[Line]]:
    """Lines in groups if each cell of a group is a record, e.g. a product: its name, "Price 5", "Made of wood".

    The groups stand apart and have as many lines each, and one of the lines begins with the same word in all cells.
    Empty if the lines are no records.
    """
    pitches = _pitches(lines)
    groups = runs(lines, lambda group, line: _top(line) - _top(group[-1]) <= LOOSER * min(pitches))
    size = len(groups[0])
    if len(groups) < 2 or size < 2 or any(len(group) != size for group in groups):
        return []
    for rank in range(1, size):
        cells = [cell for group in groups for cell in cells_of(group[rank], borders).values()]
        label = cells[0][0].text
        if label.isalpha() and len(cells) > len(groups) and all(cell[0].text == label for cell in cells):
            return groups
    return []


def _goes_on(above: dict[int, Line], cells: dict[int, Line], in_row: set[int], ends: Sequence[float]) -> bool:
    if not set(cells) <= in_row or len(cells) > max(CONTINUED_SHARE * len(ends), 1):
        return False
    return all(column in above and _was_full(above[column], cells[column], ends[column]) for column in cells)


def _lines_of_grid(lines: list[Line], borders: Sequence[float]) -> list[list[Line]]:
    """Lines between the rules of a grid, or in the shade of a row.

    One row, or a group of rows that rules do not divide.
    """
    if len(lines) == 1:
        return [lines]
    columns = [cells_of(line, borders) for line in lines]
    ends = _ends(columns, len(borders) + 1)
    if any(len(cells) < max(ROW_SHARE * len(ends), 2) for cells in columns):
        return [lines]
    for column in range(len(ends)):
        breaks = [(one[column], other[column]) for one, other in pairwise(columns) if column in one and column in other]
        if breaks and all(_was_full(one, other, ends[column]) for one, other in breaks):
            return [lines]
    return [[line] for line in lines] if len(ends) > 2 or len(lines) > 2 else [lines]


def _header(lines: list[Line], borders: Sequence[float]) -> list[list[Line]]:
    """Lines above the first rule of a table.

    A line goes on with the one above if its words do, "Rated" over "power".
    """

    def goes_on(part: list[Line], line: Line) -> bool:
        first = [cell[0].text for cell in cells_of(line, borders).values()]
        is_stacked = _top(line) - _top(part[-1]) < STACKED * line[0].size
        return is_stacked or any(word[:1].islower() and word.isalpha() for word in first)

    return runs(lines, goes_on)


def _was_full(above: Line, below: Line, end: float) -> bool:
    """Whether the first word of a cell's line had no room at the end of the line above.

    That line is long enough to have been wrapped.
    """
    first, last = below[0], above[-1]
    if last.box.right - above[0].box.left < WRAPPED_EMS * first.size:
        return False
    return last.text.endswith("-") or last.box.right + 0.25 * first.size + first.box.right - first.box.left > end


def _ends(columns: Sequence[dict[int, Line]], count: int) -> list[float]:
    """How far the text of each column reaches."""
    return [
        max((words[-1].box.right for cells in columns if (words := cells.get(column))), default=0.0)
        for column in range(count)
    ]


def _top(line: Line) -> float:
    return min(word.box.top for word in line)


def _pitches(lines: Sequence[Line]) -> list[float]:
    """Points from the top of each line to that of the next one."""
    return [_top(below) - _top(above) for above, below in pairwise(lines)]
