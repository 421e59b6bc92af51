"""Areas of a page that shaded rows say are tables.

Filled bands of the same extent above each other, with a header's or every second row's shade.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from documents.pdf.captions import is_caption_start
from documents.pdf.clusters import around
from documents.pdf.drawings import contains
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.ruled_tables import FRAME_SHARE, area_of, is_large
from documents.pdf.table_lines import Line, font_size, fragments, lines_of
from documents.pdf.table_reader import Area, words_in
from documents.pdf.tabular import is_tabular

SAME_EDGE = 1.5  # points that the ends of shaded rows of one table differ by
TOUCH = 1.5  # points between the shades of neighbouring cells of a row
LOWEST_ROW, HIGHEST_ROW = 5.0, 120.0  # points of a shaded row
MAX_FILLS = 2000  # of a page; what has more is a drawing
ROW_GAP = 1.6  # heights of the highest shaded row that a row between two of them has, whatever stands in it,
WRAPPED_GAP = 4.0  # and if it begins in several cells
CELL_GAP = 0.9  # font sizes between cells of a row
IN_CELLS = 0.6  # of the rows that have words in several cells
LINE_GAP = 0.6  # font sizes between lines of a cell
SAME_START = 3.0  # points between the beginnings of cells of one column


def shaded(page: Page, taken: Sequence[Box]) -> list[Area]:
    """Areas of shaded rows, with the rows between them and the one below the last.

    Args:
        page: The page.
        taken: Areas that are tables already.
    """
    fills = [fill for fill in page.fills if not any(contains(box, fill) for box in taken)]
    if not 2 <= len(fills) <= MAX_FILLS:
        return []
    stacks: list[list[Box]] = []
    for row in _shaded_rows(fills):
        stack = next((stack for stack in stacks if _same_extent(stack[-1], row)), None)
        if stack is None:
            stacks.append([row])
        else:
            stack.append(row)
    words = [word for word in page.words if word.upright]
    return [area for stack in stacks if len(stack) > 1 for area in _tables_of(stack, page, words)]


def _shaded_rows(fills: Sequence[Box]) -> list[Box]:
    """Shades as high as rows, from the top; those of neighbouring cells as one."""
    rows: list[Box] = []
    for fill in sorted(fills, key=lambda fill: (round(fill.top), fill.left)):
        if not LOWEST_ROW <= fill.bottom - fill.top <= HIGHEST_ROW:
            continue
        last = rows[-1] if rows else None
        if (
            last
            and max(abs(last.top - fill.top), abs(last.bottom - fill.bottom)) <= TOUCH
            and fill.left <= last.right + TOUCH
        ):
            rows[-1] = around([last, fill])
        else:
            rows.append(fill)
    return rows


def _same_extent(one: Box, other: Box) -> bool:
    return abs(one.left - other.left) <= SAME_EDGE and abs(one.right - other.right) <= SAME_EDGE


def _tables_of(stack: Sequence[Box], page: Page, words: Sequence[PageWord]) -> list[Area]:
    """Runs of shaded rows with no more than one row between two of them."""
    highest = max(row.bottom - row.top for row in stack)
    runs: list[list[Box]] = [[stack[0]]]
    for above, below in pairwise(stack):
        between = _inside(words, Box(above.left, above.bottom, above.right, below.top))
        gap = below.top - above.bottom
        if between is not None and _is_row(between, gap, highest):
            runs[-1].append(below)
        else:
            runs.append([below])
    return [area for run in runs if len(run) > 1 for area in _believed(run, page, words)]


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
    """The area of a run whose rows have several cells."""
    box = around(list(run))
    limits = sorted({box.top, *(edge for row in run for edge in (row.top, row.bottom))})
    rows = [lines_of(words_in(words, Box(box.left, top, box.right, bottom))) for top, bottom in pairwise(limits)]
    filled = [lines for lines in rows if lines]
    in_cells = sum(len(fragments(lines[0], CELL_GAP)) > 1 for lines in filled)
    inside = [line for lines in filled for line in lines]
    if in_cells < max(IN_CELLS * len(filled), 2) or not is_tabular(inside):
        return []
    box = box._replace(bottom=_last_row_end(run, inside, words))
    area = replace(area_of([box], page), striped=_is_striped(run))
    return [area] if is_large(box) and box.bottom - box.top < FRAME_SHARE * page.height else []


def _last_row_end(run: Sequence[Box], inside: Sequence[Line], words: Sequence[PageWord]) -> float:
    """Where a table ends whose every second row is shaded.

    Below the row that follows the last shade, if there is one.
    """
    last = run[-1]
    if not _is_striped(run):
        return last.bottom
    size = font_size(word for line in inside for word in line)
    starts = {part[0].box.left for line in inside for part in fragments(line, CELL_GAP)}
    above = max(word.box.bottom for line in inside for word in line)
    padding = last.bottom - above
    below = Box(last.left, last.bottom, last.right, last.bottom + HIGHEST_ROW)
    end = last.bottom
    for line in _inside(words, below) or []:
        top, bottom = min(word.box.top for word in line), max(word.box.bottom for word in line)
        parts = fragments(line, CELL_GAP)
        first = end == last.bottom
        nearest = top - end <= padding + LINE_GAP * size if first else top - (end - padding) <= LINE_GAP * size
        at_columns = all(any(abs(part[0].box.left - start) <= SAME_START for start in starts) for part in parts)
        if not nearest or not at_columns or (first and len(parts) < 2):
            break
        end = bottom + padding
    return end


def _is_striped(run: Sequence[Box]) -> bool:
    """Whether every second row is shaded, so that a row without shade may follow the last one."""
    return run[-1].top - run[-2].bottom > TOUCH


def _inside(words: Sequence[PageWord], box: Box) -> list[Line] | None:
    """Lines whose words are between the sides of a box; None, or the lines above, where one runs across a side."""
    beside = lines_of(word for word in words if box.top <= (word.box.top + word.box.bottom) / 2 <= box.bottom)
    found: list[Line] = []
    for line in beside:
        inside = []
        for part in fragments(line):
            left, right = part[0].box.left, part[-1].box.right
            if left < box.right and right > box.left:
                if left < box.left - SAME_EDGE or right > box.right + SAME_EDGE:
                    return found or None
                inside += part
        if inside:
            found.append(inside)
    return found
