"""Connected groups of boxes on a page, by runs of marked cells of a grid.

The time grows with the page's area, hardly with their number.
"""

import numpy as np

from documents.pdf.page import Box

CELL = 2.0  # points
MAX_CELLS = 1_000_000  # of a page; a poster gets a coarser grid


def groups(boxes: list[Box], reach: float) -> list[list[int]]:
    """Indices of the boxes in connected groups, each in the order given.

    Args:
        boxes: Upright rectangles.
        reach: Points between two boxes that still connect them; rounded up to cells of the grid.
    """
    if len(boxes) < 2:
        return [[index] for index in range(len(boxes))]
    edges = np.asarray(boxes, dtype=float) + np.array([-reach, -reach, reach, reach]) / 2
    left, top = edges[:, 0].min(), edges[:, 1].min()
    width, height = edges[:, 2].max() - left, edges[:, 3].max() - top
    cell = max(CELL, (width * height / MAX_CELLS) ** 0.5, max(width, height) / MAX_CELLS)
    x1, y1, x2, y2 = np.floor((edges - np.array([left, top, left, top])) / cell).astype(int).T
    marks = np.zeros((y2.max() + 2, x2.max() + 2), dtype=np.int64)
    for ys, xs, sign in ((y1, x1, 1), (y1, x2 + 1, -1), (y2 + 1, x1, -1), (y2 + 1, x2 + 1, 1)):
        np.add.at(marks, (ys, xs), sign)
    marked = marks.cumsum(0).cumsum(1)[:-1, :-1] > 0
    roots = _roots(marked)
    labels: dict[int, list[int]] = {}
    for index, root in enumerate(roots[y1, x1].tolist()):
        labels.setdefault(root, []).append(index)
    return list(labels.values())


def _roots(marked: np.ndarray) -> np.ndarray:
    """The connected component of each marked cell; cells touch at their sides."""
    steps = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    parent = list(range(len(rows)))

    def find(run: int) -> int:
        while parent[run] != run:
            parent[run] = parent[parent[run]]
            run = parent[run]
        return run

    above = 0
    first_of_row = np.searchsorted(rows, np.arange(marked.shape[0] + 1)).tolist()
    for row, start, end, run in zip(rows.tolist(), starts.tolist(), ends.tolist(), range(len(parent)), strict=True):
        if row == 0:
            continue
        above = max(above, first_of_row[row - 1])
        while above < first_of_row[row] and ends[above] <= start:
            above += 1
        other = above
        while other < first_of_row[row] and starts[other] < end:
            parent[find(other)] = find(run)
            other += 1
    run_of_cell = np.cumsum(np.where(marked, np.pad(marked, ((0, 0), (1, 0)))[:, :-1] == 0, 0), axis=None) - 1
    roots = np.array([find(run) for run in range(len(parent))])
    return roots[run_of_cell.reshape(marked.shape).clip(0)]


def around(boxes: list[Box]) -> Box:
    """The smallest box around one or more boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
