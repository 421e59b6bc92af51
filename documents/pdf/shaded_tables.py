"""Areas of a page that shaded rows say are tables.

Filled bands of the same extent above each other, with a header's or every second row's shade.
"""

from collections.abc import Sequence
from dataclasses import replace

from documents.pdf.captions import is_caption_start
from documents.pdf.clusters import around, fragments, runs
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.ruled_tables import FRAME_SHARE, area_of, is_large, stacks
from documents.pdf.table_lines import Line, font_size, lines_of, words_in
from documents.pdf.table_reader import Area
from documents.pdf.tabular import is_tabular

SAME_EDGE = 1.5  # points that the ends of shaded rows of one table differ by
TOUCH = 1.5  # points between the shades of neighbouring cells of a row
LOWEST_ROW, HIGHEST_ROW = 5.0, 120.0  # points of a shaded row
MAX_FILLS = 2000  # of a page; what has more is a drawing
ROW_GAP = 1.6  # heights of the highest shaded row that a row between two of them has, whatever stands in it,
WRAPPED_GAP = 4.0  # and if it begins in several cells
CELL_GAP = 0.9  # font sizes between cells of a row
LINE_GAP = 0.6  # font sizes between lines of a cell
SAME_START = 3.0  # points between the beginnings of cells of one column


def shaded(page: Page, taken: Sequence[Box]) -> list[Area]:
    """Areas of shaded rows, with the rows between them and the one below the last.

    Args:
        page: The page.
        taken: Areas that are tables already.
    """
    fills = [fill for fill in page.fills if not any(box.contains(fill) for box in taken)]
    if len(fills) > MAX_FILLS:
        return []
    words = [word for word in page.words if word.upright]
    found = [run for stack in stacks(_shaded_rows(fills), SAME_EDGE) for run in _runs(stack, words)]
    return [area for run in found if len(run) > 1 for area in _believed(run, page, words)]


def _shaded_rows(fills: Sequence[Box]) -> list[Box]:
    """Shades as high as rows, from the top; those of neighbouring cells as one."""
    rows: list[Box] = []
    for fill in sorted(fills, key=lambda fill: (round(fill.top), fill.left)):
        if not LOWEST_ROW <= fill.height <= HIGHEST_ROW:
            continue
        last = rows[-1] if rows else fill
        beside = max(abs(last.top - fill.top), abs(last.bottom - fill.bottom)) <= TOUCH
        if rows and beside and fill.left <= last.right + TOUCH:
            rows[-1] = around([last, fill])
        else:
            rows.append(fill)
    return rows


def _runs(stack: Sequence[Box], words: Sequence[PageWord]) -> list[list[Box]]:
    """Shaded rows with no more than one row between two of them."""
    highest = max(row.height for row in stack)

    def goes_on(run: list[Box], below: Box) -> bool:
        gap = run[-1]._replace(top=run[-1].bottom, bottom=below.top)
        return not _runs_across(words, gap) and _is_row(lines_of(words_in(words, gap)), gap.height, highest)

    return runs(stack, goes_on)


def _runs_across(words: Sequence[PageWord], box: Box) -> bool:
    """Whether a line of text runs across a side of a box."""
    lines = lines_of(word for word in words if box.top <= word.box.middle <= box.bottom)
    spans = [(part[0].box.left, part[-1].box.right) for line in lines for part in fragments(line)]
    return any(
        left < at - SAME_EDGE and right > at + SAME_EDGE for left, right in spans for at in (box.left, box.right)
    )


def _is_row(lines: Sequence[Line], gap: float, highest: float) -> bool:
    """Whether what stands between two shaded rows is a row.

    Nothing if they touch, else few lines that are no caption.
    """
    if not lines:
        return gap <= TOUCH
    if any(is_caption_start("table", line) or is_caption_start("figure", line) for line in lines):
        return False
    return gap <= (WRAPPED_GAP if len(fragments(lines[0], CELL_GAP)) > 1 else ROW_GAP) * highest


def _believed(run: Sequence[Box], page: Page, words: Sequence[PageWord]) -> list[Area]:
    """The area of a run, if its words are in columns."""
    box = around(run)
    inside = lines_of(words_in(words, box))
    if not is_tabular(inside):
        return []
    striped = run[-1].top - run[-2].bottom > TOUCH  # a row without shade may follow the last one
    if striped:
        box = box._replace(bottom=_last_row_end(run[-1], inside, words))
    area = replace(area_of([box], page), striped=striped)
    return [area] if is_large(box) and box.height < FRAME_SHARE * page.height else []


def _last_row_end(last: Box, inside: Sequence[Line], words: Sequence[PageWord]) -> float:
    """Where a table ends whose every second row is shaded.

    Below the row that follows the last shade, if there is one.
    """
    size = font_size(word for line in inside for word in line)
    starts = {part[0].box.left for line in inside for part in fragments(line, CELL_GAP)}
    padding = last.bottom - max(word.box.bottom for line in inside for word in line)
    end, room = last.bottom, padding + LINE_GAP * size
    for line in lines_of(words_in(words, last._replace(top=last.bottom, bottom=last.bottom + HIGHEST_ROW))):
        box, parts = around(word.box for word in line), fragments(line, CELL_GAP)
        at_columns = all(any(abs(part[0].box.left - start) <= SAME_START for start in starts) for part in parts)
        if box.top - end > room or not at_columns or (end == last.bottom and len(parts) < 2):
            break
        end, room = box.bottom, LINE_GAP * size
    return end + padding if end > last.bottom else end
