"""Tables whose rows are told by shades alone, and shades that are no table's."""

from collections.abc import Sequence

import pytest

from documents.pdf.page import Box, Page, PageWord
from documents.pdf.tables import find_tables
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


TASKS = [("Task", "Period"), ("Replace the|fan", "7750 operating|hours"), ("Save", "22 weeks"), ("Dry", "4000|hours")]
NEW = "The figures above are those of a new device in a dry place"
BESIDE = [word for at in range(12) for word in words("The pump moves the water on", 400, 96 + 12 * at)]
HALVES = [half for row in shades(100, *range(4)) for half in (row._replace(right=270), row._replace(left=270))]
ONE = striped(ROWS[:5])
BELOW = page([*ONE.words, *words("Table 7: Size", 100, 184), *cells(ROWS[:3], LEFTS, 202)],
             fills=[*ONE.fills, *shades(200, 0, 2)])  # fmt: skip
NEVER = "Never reach inside after the plug was pulled"
NOTES = [*words(NEVER, 104, 102), *words("The cover stays shut meanwhile", 104, 118), *words(NEVER, 104, 130)]
APART = [word for top in (102, 400) for row in (0, 1) for word in cells([ROWS[row]], LEFTS, top + 14 * row)]
ACROSS = words("Both tables hold for a new device in a dry place that stands on firm ground", 60, 145)
TWO = page(
    [*striped(ROWS[:3]).words, *ACROSS, *cells(ROWS[3:], LEFTS, 160)], fills=shades(100, 0, 2) + shades(158, 0, 2)
)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (striped(ROWS[:5]), [ROWS[:5]]),  # the last row is in a shade
        (striped(ROWS), [ROWS]),  # or follows the last one
        (page(cells(ROWS[:4], LEFTS, 102), fills=HALVES), [ROWS[:4]]),
        (page(cells(TASKS, LEFTS, 102), fills=[Box(100, 100, 370, 114), Box(100, 139, 370, 153)]), [TASKS]),
        (striped(ROWS, *BESIDE, *words(NEW, 100, 190)), [ROWS]),
        (striped(ROWS[:5], *words(NEW, 104, 174)), [ROWS[:5]]),
        (BELOW, [ROWS[:5], ROWS[:3]]),
        (TWO, [ROWS[:3], ROWS[3:]]),
        (page(NOTES, fills=shades(100, 0, 2)), []),
        (page(APART, fills=[*shades(100, 0), *shades(398, 0)]), []),
    ],
    ids=["every second row", "the last row unshaded", "cell by cell", "lines of a cell in its shade or between two",
         "text beside and below", "text close below", "two of one width", "text across the sides of two",
         "notes in boxes", "boxes apart"],
)  # fmt: skip
def test_tables_of_shaded_rows(one: Page, expected: list[Sequence[Sequence[str]]]) -> None:
    tables = [table for _, table in find_tables(one)]
    assert [table.rows for table in tables] == [
        tuple(tuple(cell.replace("|", " ") for cell in row) for row in rows) for rows in expected
    ]
    assert all(table.header_rows == 1 for table in tables)


def test_a_caption_between_two_is_that_of_the_second() -> None:
    assert [table.caption for _, table in find_tables(BELOW)] == ["", "Table 7: Size"]
