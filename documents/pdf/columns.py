"""Reading order of a page: pieces of text in columns are read down a column, all others row by row.

A gutter is a vertical strip that separates two columns of running text. Rows that cross it (titles, wide figures)
divide the page into bands, which are read from the top to the bottom; in a band the left column is read before the
right one, and each may have gutters again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from documents.pdf.clusters import around, runs
from documents.pdf.page import Box

_MIN_ROWS = 3  # of a column
_MIN_FILLED = 0.45  # of a column's width, by its mean row: labels and numbers beside text fill less
_MIN_BESIDE_PROSE = 0.25  # the same beside a column that is filled to `_PROSE_FILLED` and has about as many rows
_PROSE_FILLED, _PROSE_ROWS, _PROSE_SHARE = 0.75, 8, 0.6
_MIN_SHARE = 0.35  # of the wider column's width that the narrower one has
_MIN_EMS = 14.0  # of a column's width, in heights of a row
_MIN_BESIDE, _MIN_BESIDE_INSIDE = 0.15, 0.6  # of all rows, beside a page's gutter, and beside one inside a column
_MAX_DEPTH = 3  # gutters inside columns
_MAX_PIECES = 3000  # of a page; a fuller one is read row by row


class ColumnPiece(NamedTuple):
    """What is put in order: a run of words, a table or an image."""

    box: Box
    running: bool = True  # whether it may be running text; code and formulas, which have gaps of their own, are not


@dataclass(frozen=True, slots=True)
class Region:
    """Pieces that are read row by row, and the edges of their column."""

    pieces: tuple[int, ...]  # which, from the top
    left: float
    right: float


@dataclass(slots=True)
class _Band:
    """Rows between others; in a divided band what stands left and right of the gutter, else all on the left."""

    divided: bool
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)


def reading_order(pieces: Sequence[ColumnPiece]) -> list[Region]:
    """The regions of a page in reading order; each piece is in one of them.  The order of `pieces` does not count."""
    if not pieces:
        return []
    members = sorted(range(len(pieces)), key=lambda at: (pieces[at].box.top, pieces[at].box))
    return _split(pieces, members, 0 if len(pieces) <= _MAX_PIECES else _MAX_DEPTH)


def rows(boxes: Mapping[int, Box]) -> list[list[int]]:
    """Which boxes stand in one row, from the top: each overlaps the first of its row by half the lower one's height."""

    def is_beside(row: list[int], at: int) -> bool:
        first, box = boxes[row[0]], boxes[at]
        return first.shared_height(box) > 0.5 * min(first.height, box.height)

    return runs(sorted(boxes, key=lambda at: (boxes[at].top, boxes[at])), is_beside)


def _split(pieces: Sequence[ColumnPiece], members: Sequence[int], depth: int) -> list[Region]:
    """Regions of some pieces, which are sorted from the top."""
    boxes = [pieces[at].box for at in members]
    whole = around(boxes)
    by_row = rows({at: pieces[at].box for at in members})
    gutter = _gutter(pieces, by_row, _MIN_BESIDE_INSIDE if depth else _MIN_BESIDE) if depth < _MAX_DEPTH else None
    if gutter is None:
        return [Region(tuple(members), whole.left, whole.right)]
    regions: list[Region] = []
    for band in _bands(pieces, by_row, gutter):
        if not band.divided:
            regions.append(Region(tuple(band.left), whole.left, whole.right))
            continue
        for side, edges in ((band.left, (whole.left, gutter)), (band.right, (gutter, whole.right))):
            inner = _split(pieces, side, depth + 1) if side else []
            regions += [Region(inner[0].pieces, *_edges(boxes, edges))] if len(inner) == 1 else inner
    return regions


def _edges(boxes: Sequence[Box], column: tuple[float, float]) -> tuple[float, float]:
    """The edges of what stands in a column."""
    inside = around([box for box in boxes if column[0] <= box.left and box.right <= column[1]])
    return inside.left, inside.right


def _bands(pieces: Sequence[ColumnPiece], rows: Iterable[Iterable[int]], gutter: float) -> list[_Band]:
    """From the top: rows across the gutter, and rows beside it."""
    bands: list[_Band] = []
    for row in rows:
        divided = not any(pieces[at].box.left < gutter < pieces[at].box.right for at in row)
        if not bands or bands[-1].divided != divided:
            bands.append(_Band(divided))
        for at in row:
            side = bands[-1].right if divided and pieces[at].box.left >= gutter else bands[-1].left
            side.append(at)
    return bands


def _gutter(pieces: Sequence[ColumnPiece], rows: Sequence[Sequence[int]], share: float) -> float | None:
    """The left edge of the column beside which most rows of running text stand; None if there is none.

    Args:
        pieces: All pieces.
        rows: Those that a gutter may divide.
        share: Of the rows that must stand beside it.
    """
    starts = defaultdict[int, list[float]](list)
    for left in (pieces[at].box.left for row in rows for at in row):
        starts[round(left / 4)].append(left)
    candidates = sorted(min(lefts) for lefts in starts.values() if len(lefts) >= _MIN_ROWS)
    best, most = None, max(1.0, share * len(rows))
    for gutter in candidates[1:]:
        beside = sum(_columns(pieces, band) for band in _bands(pieces, rows, gutter) if band.divided)
        if beside >= most and (best is None or beside > most):
            best, most = gutter, beside
    return best


def _columns(pieces: Sequence[ColumnPiece], band: _Band) -> int:
    """How many rows of running text stand beside each other in a band; 0 if its sides are no columns."""
    if min(len(band.left), len(band.right)) < _MIN_ROWS:
        return 0
    widths, counts, filled, running = [], [], [], []
    height = median(pieces[at].box.bottom - pieces[at].box.top for at in (*band.left, *band.right))
    for side in (band.left, band.right):
        boxes = [pieces[at].box for at in side]
        whole, by_row = around(boxes), rows({at: pieces[at].box for at in side})
        width = whole.right - whole.left
        # a side of tables and images has no lines of its own that say how high a row is
        if width < _MIN_EMS * min(height, median(box.bottom - box.top for box in boxes)):
            return 0
        widths.append(width)
        counts.append(len(by_row))
        lengths = [box.right - box.left for box in boxes]
        filled.append(sum(lengths) / len(by_row) / width)
        of_text = (length for at, length in zip(side, lengths, strict=True) if pieces[at].running)
        running.append(sum(of_text) > 0.5 * sum(lengths))
    if min(counts) < _MIN_ROWS or not any(running) or min(widths) < _MIN_SHARE * max(widths):
        return 0
    prose = max(filled) >= _PROSE_FILLED and min(counts) >= max(_PROSE_ROWS, _PROSE_SHARE * max(counts))
    return min(counts) if min(filled) >= (_MIN_BESIDE_PROSE if prose else _MIN_FILLED) else 0
