"""Reading order of pieces of text on a page, and connected groups of boxes beside a comparison of every pair."""

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.pdf.clusters import CELL, groups
from documents.pdf.columns import ColumnPiece, reading_order
from documents.pdf.page import Box

LEFT, RIGHT = (50.0, 290.0), (310.0, 550.0)
BY_ROW = [(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)]


def piece(left: float, top: float, right: float, bottom: float, running: bool = True) -> ColumnPiece:
    return ColumnPiece(Box(left, top, right, bottom), running)


def rows(left: float, right: float, top: float, count: int, running: bool = True) -> list[ColumnPiece]:
    return [piece(left, top + 12 * at, right, top + 12 * at + 10, running) for at in range(count)]


def sides(top: float, count: int, running: bool = True) -> list[ColumnPiece]:
    return [*rows(*LEFT, top, count, running), *rows(*RIGHT, top, count, running)]


TITLE = piece(150, 50, 450, 70)
# High boxes say nothing about how high a line is, and so about how narrow a column may be.
HIGH = [piece(310, 100, 440, 110), piece(310, 114, 520, 300), piece(310, 320, 440, 330), piece(310, 334, 520, 500)]
CELLS = [[piece(at, 100 + 12 * n, at + (30 if n else 240), 110 + 12 * n) for n in range(6)] for at in (50, 310)]
CONTENTS = [piece(50, 100 + 12 * at, 120 + 17 * (at % 11), 110 + 12 * at) for at in range(30)]


@pytest.mark.parametrize(
    ("pieces", "regions"),
    [
        (sides(100, 10), [(*range(10),), (*range(10, 20),)]),
        ([*rows(50, 200, 100, 8), *rows(220, 370, 100, 8), *rows(390, 540, 100, 8)], []),
        ([*rows(*LEFT, 100, 45), *HIGH, piece(310, 510, 520, 640)], []),
        ([TITLE, *sides(100, 10), piece(100, 230, 500, 400), *sides(410, 6)], []),
        ([*rows(50, 110, 100, 6), *rows(150, 550, 100, 6)], BY_ROW),
        ([*CELLS[0], *CELLS[1]], BY_ROW),
        (sides(100, 6, running=False), BY_ROW),
        ([*CONTENTS, *rows(*RIGHT, 100, 30)], []),
    ],
    ids=["two columns", "three columns", "tables and images beside text", "what crosses the gutter divides them",
         "labels beside text", "values beside names", "comments beside code", "contents beside running text"],
)  # fmt: skip
def test_pieces_are_read_region_by_region(pieces: list[ColumnPiece], regions: list[tuple[int, ...]]) -> None:
    """In the order in which they are given, if no regions are; whatever their order in the file is."""
    found = reading_order(pieces)
    order = [at for region in found for at in region.pieces]
    assert order == [at for region in regions for at in region] or list(range(len(pieces)))
    assert not regions or [region.pieces for region in found] == regions
    for seed in range(3):
        shuffled = random.Random(seed).sample(pieces, len(pieces))
        again = [shuffled[at] for region in reading_order(shuffled) for at in region.pieces]
        assert again == [pieces[at] for at in order]


def test_a_region_has_its_edges() -> None:
    assert [(region.left, region.right) for region in reading_order(sides(100, 10))] == [LEFT, RIGHT]


EDGES = st.tuples(st.floats(0, 600), st.floats(0, 800), st.floats(0.1, 500), st.floats(0.1, 60))


@given(st.lists(EDGES.map(lambda box: piece(box[0], box[1], box[0] + box[2], box[1] + box[3])), max_size=60))
def test_every_piece_is_in_one_region(pieces: list[ColumnPiece]) -> None:
    assert sorted(at for region in reading_order(pieces) for at in region.pieces) == list(range(len(pieces)))


SPANS = st.tuples(st.integers(-80, 240), st.integers(0, 100)).map(lambda span: (span[0] / 4, span[1] / 4))  # exact
BOXES = st.lists(st.builds(lambda x, y: Box(x[0], y[0], x[0] + x[1], y[0] + y[1]), SPANS, SPANS), max_size=12)


def touching(boxes: list[Box], reach: float) -> list[set[int]]:
    """Groups of boxes that cover cells with a common side or a common cell, merged until none touch."""

    def cells(box: Box, axis: int) -> range:
        """That a box covers with half its reach around it; the first box begins at 0."""
        start, end = (box[at] - min(one[axis] for one in boxes) for at in (axis, axis + 2))
        return range(math.floor(start / CELL), math.floor((end + reach) / CELL) + 1)

    merged: list[tuple[set[int], set[tuple[int, int]]]] = []
    for index, box in enumerate(boxes):
        members, covered = {index}, {*product(cells(box, 0), cells(box, 1))}
        near = covered | {(x + dx, y + dy) for x, y in covered for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))}
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
