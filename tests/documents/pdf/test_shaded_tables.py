"""Tables whose rows are told by shades alone, and shades that are no table's."""

from collections.abc import Sequence

import pytest

from documents.pdf.page import Box, Page, PageWord
from documents.pdf.tables import find_tables
from documents.records import Table
from tests.helpers.hand_made_pages import cells, page, words

LEFTS = (104.0, 284.0)
ROWS = (
    ("What", "Figure"),
    ("Room temperature, at least from", "6 degrees"),
    ("Room temperature, at most up to", "46 degrees"),
    ("Humidity of the air, up to", "85 %"),
    ("Height above the sea, up to", "2900 m"),
    ("Loudness one metre away", "61 dB"),
)


def shades(top: float, *which: int, right: float = 370.0, pitch: float = 14.0) -> list[Box]:
    """Shades of rows, which touch each other where they follow each other."""
    return [Box(100, top + pitch * row, right, top + pitch * (row + 1)) for row in which]


def striped(rows: Sequence[Sequence[str]] = ROWS, *around: PageWord) -> Page:
    """A table at 100 from the top: a shaded header, and every second row below it."""
    return page([*cells(rows, LEFTS, 102), *around], fills=shades(100, *range(0, len(rows), 2)))


def tables(one: Page) -> list[Table]:
    return [table for _, table in find_tables(one)]


@pytest.mark.parametrize("count", [5, 6])
def test_every_second_row_shaded(count: int) -> None:
    """The last row is in a shade, or follows the last one."""
    (table,) = tables(striped(ROWS[:count]))
    assert table.rows == ROWS[:count]
    assert table.header_rows == 1


def test_every_row_shaded_cell_by_cell() -> None:
    fills = [half for row in shades(100, *range(4)) for half in (row._replace(right=270), row._replace(left=270))]
    (table,) = tables(page(cells(ROWS[:4], LEFTS, 102), fills=fills))
    assert table.rows == ROWS[:4]


def test_lines_of_a_cell_are_in_its_shade_or_between_two() -> None:
    rows = (
        ("Task", "Period"),
        ("Replace the|fan", "7750 operating|hours"),
        ("Save", "22 weeks"),
        ("Dry", "4000|hours"),
    )
    fills = [Box(100, 100, 370, 114), Box(100, 139, 370, 153)]
    (table,) = tables(page(cells(rows, LEFTS, 102), fills=fills))
    assert table.rows == tuple(tuple(cell.replace("|", " ") for cell in row) for row in rows)


def test_a_column_of_text_beside_it_and_text_below_stay_out() -> None:
    beside = [word for at in range(12) for word in words("The pump moves the water on", 400, 96 + 12 * at)]
    below = words("The figures above are those of a new device in a dry place", 100, 190)
    (table,) = tables(striped(ROWS, *beside, *below))
    assert table.rows == ROWS


def test_text_close_below_is_no_row() -> None:
    (table,) = tables(striped(ROWS[:5], *words("The figures above are those of a new device in a dry place", 104, 174)))
    assert table.rows == ROWS[:5]


def test_tables_of_one_width_below_each_other_are_two() -> None:
    one, other = striped(ROWS[:5]), cells(ROWS[:3], LEFTS, 202)
    caption = words("Table 7: Size", 100, 184)
    found = tables(page([*one.words, *caption, *other], fills=[*one.fills, *shades(200, 0, 2)]))
    assert [table.rows for table in found] == [ROWS[:5], ROWS[:3]]
    assert found[1].caption == "Table 7: Size"


def test_notes_in_shaded_boxes_are_no_table() -> None:
    text = "Never reach inside after the plug was pulled"
    found = [*words(text, 104, 102), *words("The cover stays shut meanwhile", 104, 118), *words(text, 104, 130)]
    assert tables(page(found, fills=shades(100, 0, 2))) == []
    apart = [word for top in (102, 400) for row in (0, 1) for word in cells([ROWS[row]], LEFTS, top + 14 * row)]
    assert tables(page(apart, fills=[*shades(100, 0), *shades(398, 0)])) == []


def test_text_that_runs_across_the_sides_of_two_tables_parts_them() -> None:
    one, other = striped(ROWS[:3]), cells(ROWS[3:], LEFTS, 160)
    across = words("Both tables hold for a new device in a dry place that stands on firm ground", 60, 145)
    found = tables(page([*one.words, *across, *other], fills=[*one.fills, *shades(158, 0, 2)]))
    assert [table.rows for table in found] == [ROWS[:3], ROWS[3:]]
