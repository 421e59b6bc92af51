"""Connected groups of boxes on a page, by runs of marked cells of a grid.

The time grows with the page's area, hardly with their number.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from documents.pdf.page import Box, PageWord

Item = TypeVar("Item")
BLANK = 0.5  # font sizes; a wider gap is more than a blank between two words
CELL = 2.0  # points
_RUN = re.compile("1+")
MAX_CELLS = 1000  # of a page's side; a poster gets a coarser grid


def groups(boxes: Sequence[Box], reach: float) -> list[list[int]]:
    """Indices of the boxes in connected groups, each in the order given.

    Args:
        boxes: Upright rectangles.
        reach: Points between two boxes that still connect them; rounded up to cells of the grid.
    """
    if len(boxes) < 2:
        return [[index] for index in range(len(boxes))]
    half = reach / 2
    edges = [(x1 - half, y1 - half, x2 + half, y2 + half) for x1, y1, x2, y2 in boxes]
    lefts, tops, rights, bottoms = zip(*edges, strict=True)
    left, top = min(lefts), min(tops)
    width, height = max(rights) - left, max(bottoms) - top
    cell = max(CELL, width / MAX_CELLS, height / MAX_CELLS)
    cells = [
        tuple(math.floor((edge - start) / cell) for edge, start in zip(each, (left, top, left, top), strict=True))
        for each in edges
    ]
    rows = _marked_runs(cells)
    parents = {(y, *run): (y, *run) for y, row in enumerate(rows) for run in row}

    def find(run: tuple[int, int, int]) -> tuple[int, int, int]:
        while parents[run] != run:
            parents[run] = parents[parents[run]]
            run = parents[run]
        return run

    for y, (above, below) in enumerate(pairwise(rows)):
        place = 0
        for start, end in below:
            while place < len(above) and above[place][1] <= start:
                place += 1
            for other in above[place:]:
                if other[0] >= end:
                    break
                parents[find((y, *other))] = find((y + 1, start, end))
    found: dict[tuple[int, int, int], list[int]] = {}
    for index, (x, y, _, _) in enumerate(cells):
        run = rows[y][bisect_right(rows[y], (x, math.inf)) - 1]
        found.setdefault(find((y, *run)), []).append(index)
    return list(found.values())


def _marked_runs(cells: list[tuple[int, ...]]) -> list[list[tuple[int, int]]]:
    """The runs of cells that boxes cover in each row, from a first cell to before an end."""
    rows = [0] * (max(y2 for _, _, _, y2 in cells) + 1)
    for x1, y1, x2, y2 in set(cells):
        bits = (1 << x2 + 1) - (1 << x1)
        for y in range(y1, y2 + 1):
            rows[y] |= bits
    return [[run.span() for run in _RUN.finditer(f"{bits:b}"[::-1])] for bits in rows]


def joined(boxes: Sequence[Box], reach: float) -> list[Box]:
    """Boxes around the groups that boxes form, see `groups`."""
    return [around(boxes[index] for index in group) for group in groups(boxes, reach)]


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around one or more boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


def fragments(line: Iterable[PageWord], gap: float = BLANK) -> list[list[PageWord]]:
    """Words of a line, from the left, in runs without a gap wider than `gap` font sizes."""
    return runs(line, lambda part, word: word.box.left - part[-1].box.right <= gap * max(word.size, part[-1].size))


def runs(items: Iterable[Item], goes_on: Callable[[list[Item], Item], bool]) -> list[list[Item]]:
    """Items in runs: `goes_on` says whether the latest run goes on with an item, which else begins another."""
    found: list[list[Item]] = []
    for item in items:
        if found and goes_on(found[-1], item):
            found[-1].append(item)
        else:
            found.append([item])
    return found
