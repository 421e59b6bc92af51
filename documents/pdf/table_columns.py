"""Where the columns of a table end: vertical strips that next to no line of the table has words in."""

from collections.abc import Sequence
from itertools import pairwise

from documents.pdf.clusters import fragments
from documents.pdf.table_lines import Line, font_size

GAP = 0.7  # font sizes between two columns, where three lines or more agree
GAP_OF_FEW = 1.1  # font sizes, where fewer lines do
FEW_LINES = 3
CROSSING_SHARE = 0.25  # of the lines that may run across a strip: cells that span several columns
SHARED_LINES = 0.5  # of the lines of the emptier one of two columns that have words in both
MAX_COLUMNS = 60


def column_ends(lines: Sequence[Line], gap: float | None = None) -> list[float]:
    """Where the columns of lines end, see `separators`."""
    words = [word for line in lines for word in line]
    left, right = min(word.box.left for word in words), max(word.box.right for word in words)
    return separators(lines, left, right, font_size(words), gap)


def separators(lines: Sequence[Line], left: float, right: float, size: float, gap: float | None = None) -> list[float]:
    """Where columns end, as distances from the page's left edge, sorted.

    Args:
        lines: The table's lines.
        left: Where the area begins that is divided.
        right: Where it ends.
        size: The table's usual font size, points.
        gap: Font sizes between two columns; None takes the usual ones.
    """
    least = size * (gap or (GAP if len(lines) > FEW_LINES else GAP_OF_FEW))
    inside = [[word for word in line if left < word.box.center < right] for line in lines]
    rows = [[_span(part) for part in fragments(line)] for line in inside if line]
    if not rows:
        return []
    allowed = int(CROSSING_SHARE * len(rows)) if len(rows) > 2 else 0
    cores = covered([part for row in rows for part in row], allowed)
    kept = [part for row in rows for part in row if sum(_meets(part, core) for core in cores) <= 1]
    gaps = [(one[1], other[0]) for one, other in pairwise(covered(kept, 0)) if other[0] - one[1] >= least]
    middles = [(start + end) / 2 for start, end in gaps][: MAX_COLUMNS - 1]
    whole = set(kept)
    return _side_by_side(middles, [[part for part in row if part in whole] for row in rows])


def _side_by_side(borders: Sequence[float], rows: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """The borders with columns on both sides that share lines; a heading and what is centered under it do not."""
    sides = [{column_at((start + end) / 2, borders) for start, end in row} for row in rows]
    filled = [{number for number, row in enumerate(sides) if column in row} for column in range(len(borders) + 1)]
    held: list[float] = []
    before = filled[0]  # rows with words between the latest border that is held and the next one
    for border, inside in zip(borders, filled[1:], strict=True):
        if len(before & inside) >= SHARED_LINES * min(len(before), len(inside)):
            held.append(border)
            before = inside
        else:
            before |= inside
    return held


def _span(words: Line) -> tuple[float, float]:
    return words[0].box.left, max(word.box.right for word in words)


def _meets(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def covered(spans: Sequence[tuple[float, float]], allowed: int) -> list[tuple[float, float]]:
    """Intervals that more than `allowed` spans cover, from the left."""
    steps = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    found: list[tuple[float, float]] = []
    depth, begun = 0, 0.0
    for at, step in steps:
        if depth <= allowed < depth + step:
            begun = at
        elif depth + step <= allowed < depth:
            found.append((begun, at))
        depth += step
    return found


def column_at(x: float, borders: Sequence[float]) -> int:
    """Which column a place is in, from 0."""
    return sum(border < x for border in borders)


def cells_of(line: Line, borders: Sequence[float]) -> dict[int, Line]:
    """A line's words by column."""
    cells: dict[int, Line] = {}
    for word in line:
        cells.setdefault(column_at(word.box.center, borders), []).append(word)
    return cells
