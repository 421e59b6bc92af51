"""Connected groups of boxes, beside a comparison of every pair of them."""

import math
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from documents.pdf.clusters import CELL, groups
from documents.pdf.page import Box

SPANS = st.tuples(st.integers(-80, 240), st.integers(0, 100)).map(lambda span: (span[0] / 4, span[1] / 4))  # exact
BOXES = st.lists(st.builds(lambda x, y: Box(x[0], y[0], x[0] + x[1], y[0] + y[1]), SPANS, SPANS), max_size=12)


def cells_of(start: float, end: float, reach: float) -> range:
    return range(math.floor((start - reach / 2) / CELL), math.floor((end + reach / 2) / CELL) + 1)


def touching(boxes: list[Box], reach: float) -> list[set[int]]:
    """Groups of boxes that cover cells with a common side or a common cell, merged until none touch."""
    left, top = min(box[0] for box in boxes) - reach / 2, min(box[1] for box in boxes) - reach / 2
    cells = [
        set(product(cells_of(box[0] - left, box[2] - left, reach), cells_of(box[1] - top, box[3] - top, reach)))
        for box in boxes
    ]
    merged: list[tuple[set[int], set[tuple[int, int]]]] = []
    for index, own in enumerate(cells):
        near = own | {(x + dx, y + dy) for x, y in own for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))}
        members, covered = {index}, set(own)
        for group in [group for group in merged if group[1] & near]:
            merged.remove(group)
            members, covered = members | group[0], covered | group[1]
        merged.append((members, covered))
    return sorted((members for members, _ in merged), key=min)


@given(BOXES, st.sampled_from([0.0, 3.0, 8.5]))
def test_groups_are_those_of_all_pairs(boxes: list[Box], reach: float) -> None:
    found = groups(boxes, reach)
    assert all(group == sorted(group) for group in found)
    assert [set(group) for group in found] == (touching(boxes, reach) if boxes else [])
