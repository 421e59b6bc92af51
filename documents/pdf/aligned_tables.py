"""Areas of a page that are tables without rules around them.

Lines that follow each other with their words in the same columns.

Prose in columns, lists, code and forms also stand in columns: a table is believed only if a caption says so, or if it
has a header that stands out, or at least three columns that are all aligned.
"""

from collections.abc import Iterable, Sequence

from documents.pdf.captions import assign_captions
from documents.pdf.clusters import around, fragments
from documents.pdf.columns import ColumnPiece, reading_order
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.ruled_tables import area_of, is_horizontal
from documents.pdf.table_columns import cells_of, column_ends
from documents.pdf.table_lines import Line, font_size, lines_of, words_outside
from documents.pdf.table_reader import Area
from documents.pdf.table_rows import records
from documents.pdf.tabular import is_prose, is_tabular

CELL_GAP = 1.2  # font sizes between cells of a line
LINE_GAP = 1.6  # font sizes between lines of a table
MIN_LINES = 3
MIN_ROWS_OF_TWO = 4  # of a table of two columns
FILLED_SHARE = 0.6  # of the cells
MAX_WORDS = 6.0  # in a cell, on average: cells are short
MARGIN = 0.07  # of the page's height at its top and bottom, where running headers and footers are
MAX_SIZE_RATIO = 1.3  # of a line's font size to the line's before


def aligned(page: Page, taken: Sequence[Box]) -> list[Area]:
    """Areas where lines follow each other with words in the same columns.

    Args:
        page: The page.
        taken: Areas that are tables already.
    """
    words = words_outside([word for word in page.words if word.upright], taken)
    parts = [part for line in lines_of(words) for part in fragments(line, CELL_GAP)]
    boxes = [around(word.box for word in part) for part in parts]
    areas = []
    for region in reading_order([ColumnPiece(box, len(part) > 2) for box, part in zip(boxes, parts, strict=True)]):
        runs = _runs(lines_of(word for index in region.pieces for word in parts[index]))
        areas += [area for run in runs if (area := _believed(run, page, words))]
    return areas


def _runs(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that follow each other closely.

    Those without several cells go on in a cell, or are one heading of a group of rows.
    """
    runs: list[list[Line]] = []
    plain = 0  # lines without several cells at the end of the latest run
    for line in lines:
        in_cells = len(fragments(line, CELL_GAP)) > 1
        follows = bool(runs) and bool(runs[-1]) and _follows(runs[-1][-1], line)
        indented = follows and line[0].box.left > runs[-1][0][0].box.left + line[0].size
        if not follows or (not in_cells and plain and not indented):
            runs.append([])
            plain = 0
        if in_cells or runs[-1]:
            runs[-1].append(line)
        plain = 0 if in_cells or indented else plain + 1
    for run in runs:
        while run and len(fragments(run[-1], CELL_GAP)) < 2:
            run.pop()
    return [run for run in _joined_records(runs) if len(run) >= MIN_LINES]


def _joined_records(runs: Iterable[list[Line]]) -> list[list[Line]]:
    """Runs, those of records (see `table_rows.records`) that stand far apart as one."""
    joined: list[list[Line]] = []
    for run in runs:
        together = joined[-1] + run if joined else []
        if joined and len(run) > 1 and records(together, column_ends(together, CELL_GAP)):
            joined[-1] = together
        else:
            joined.append(run)
    return joined


def _follows(above: Line, below: Line) -> bool:
    size = font_size(above)
    gap = min(word.box.top for word in below) - max(word.box.bottom for word in above)
    return gap <= LINE_GAP * size and 1 / MAX_SIZE_RATIO <= font_size(below) / size <= MAX_SIZE_RATIO


def _believed(run: Sequence[Line], page: Page, words: Sequence[PageWord]) -> Area | None:
    """The area of a run that is a table; None if it is something else."""
    borders = column_ends(run, CELL_GAP)
    if not borders or not is_tabular(run, borders):
        return None
    box = around(word.box for line in run for word in line)
    rows = [cells_of(line, borders) for line in run]
    columns = [[row[column] for row in rows if column in row] for column in range(len(borders) + 1)]
    filled = sum(map(len, rows))
    if (
        filled < FILLED_SHARE * len(rows) * len(columns)
        or sum(map(len, run)) > MAX_WORDS * filled
        or any(map(is_prose, columns))
        or not MARGIN * page.height < box.middle < (1 - MARGIN) * page.height
    ):
        return None
    in_cells = sum(len(row) > 1 for row in rows)
    stands_out = _header_stands_out(run, page)
    if in_cells < (MIN_ROWS_OF_TWO if stands_out and len(borders) == 1 else MIN_LINES):
        return None
    certain = len(borders) > 1 or stands_out or records(run, borders) or assign_captions("table", [box], words)[0]
    return area_of([box], page) if certain else None


def _header_stands_out(run: Sequence[Line], page: Page) -> bool:
    """Whether the first line is bold and the others are not, or a rule stands under it."""
    first, rest = run[0], [word for line in run[1:] for word in line]
    if all(word.bold for word in first) and sum(word.bold for word in rest) < 0.5 * len(rest):
        return True
    header, body = around(word.box for word in first), around(word.box for word in rest)
    return any(
        is_horizontal(rule.box)
        and header.bottom - 2 <= rule.box.middle <= min(word.box.top for word in run[1]) + 2
        and min(rule.box.right, body.right) - max(rule.box.left, body.left) > 0.5 * rule.box.width
        for rule in page.rules
    )
