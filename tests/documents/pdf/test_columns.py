"""Reading order of pieces of text on a page."""

import random

from hypothesis import given
from hypothesis import strategies as st

from documents.pdf.columns import ColumnPiece, reading_order
from documents.pdf.page import Box


def rows(left: float, right: float, top: float, count: int, running: bool = True) -> list[ColumnPiece]:
    return [ColumnPiece(Box(left, top + 12 * at, right, top + 12 * at + 10), running) for at in range(count)]


LEFT, RIGHT = (50.0, 290.0), (310.0, 550.0)


def order(pieces: list[ColumnPiece]) -> list[int]:
    return [at for region in reading_order(pieces) for at in region.pieces]


def test_two_columns_are_read_one_after_the_other() -> None:
    pieces = [*rows(*LEFT, 100, 10), *rows(*RIGHT, 100, 10)]
    assert order(pieces) == list(range(20))
    assert [(region.left, region.right) for region in reading_order(pieces)] == [LEFT, RIGHT]


def test_three_columns() -> None:
    pieces = [*rows(50, 200, 100, 8), *rows(220, 370, 100, 8), *rows(390, 540, 100, 8)]
    assert order(pieces) == list(range(24))


def test_a_column_of_tables_and_images_is_read_after_the_text_beside_it() -> None:
    """High boxes say nothing about how high a line is, and so about how narrow a column may be."""
    heads = [ColumnPiece(Box(310, top, 440, top + 10)) for top in (100, 320)]
    high = [ColumnPiece(Box(310, top, 520, bottom)) for top, bottom in ((114, 300), (334, 500), (510, 640))]
    pieces = [*rows(*LEFT, 100, 45), heads[0], high[0], heads[1], *high[1:]]
    assert order(pieces) == list(range(len(pieces)))


def test_what_crosses_the_gutter_divides_the_columns() -> None:
    title, figure = ColumnPiece(Box(150, 50, 450, 70)), ColumnPiece(Box(100, 230, 500, 400))
    above, below = [*rows(*LEFT, 100, 10), *rows(*RIGHT, 100, 10)], [*rows(*LEFT, 410, 6), *rows(*RIGHT, 410, 6)]
    pieces = [title, *above, figure, *below]
    assert order(pieces) == list(range(len(pieces)))


def test_the_order_of_the_file_does_not_count() -> None:
    pieces = [ColumnPiece(Box(150, 50, 450, 70)), *rows(*LEFT, 100, 10), *rows(*RIGHT, 103, 9)]
    expected = [pieces[at] for at in order(pieces)]
    for seed in range(5):
        shuffled = random.Random(seed).sample(pieces, len(pieces))
        assert [shuffled[at] for at in order(shuffled)] == expected


def test_labels_beside_text_are_read_row_by_row() -> None:
    """A narrow column of labels and a wide one of text: each row belongs together."""
    labels, text = rows(50, 110, 100, 6), rows(150, 550, 100, 6)
    assert [region.pieces for region in reading_order([*labels, *text])] == [(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)]


def test_values_beside_names_are_read_row_by_row() -> None:
    """Both columns are wide, and their cells fill a small part of it."""
    names = [ColumnPiece(Box(50, 100 + 12 * at, 80 if at else 290, 110 + 12 * at)) for at in range(6)]
    values = [ColumnPiece(Box(310, 100 + 12 * at, 340 if at else 550, 110 + 12 * at)) for at in range(6)]
    assert [region.pieces for region in reading_order([*names, *values])] == [(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)]


def test_comments_beside_code_are_read_row_by_row() -> None:
    pieces = [*rows(*LEFT, 100, 6, running=False), *rows(*RIGHT, 100, 6, running=False)]
    assert len(reading_order(pieces)) == 1


def test_short_entries_beside_running_text_are_a_column() -> None:
    """A table of contents beside the first section of a paper."""
    contents = [ColumnPiece(Box(50, 100 + 12 * at, 120 + 17 * (at % 11), 110 + 12 * at)) for at in range(30)]
    assert order([*contents, *rows(*RIGHT, 100, 30)]) == list(range(60))


boxes = st.tuples(st.floats(0, 600), st.floats(0, 800), st.floats(0.1, 500), st.floats(0.1, 60)).map(
    lambda box: ColumnPiece(Box(box[0], box[1], box[0] + box[2], box[1] + box[3]))
)


@given(st.lists(boxes, max_size=60))
def test_every_piece_is_in_one_region(pieces: list[ColumnPiece]) -> None:
    assert sorted(order(pieces)) == list(range(len(pieces)))
