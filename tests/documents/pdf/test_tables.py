"""Tables of pages: ruled grids, spanning cells, booktabs, shades, lines of cells, captions; and what is no table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.pdf.page import Box, Page, PageWord, Rule
from documents.pdf.table_lines import lines_of, words_in
from documents.pdf.tables import find_tables, ruled_figures
from documents.pdf.tabular import is_tabular

Rows = Sequence[Sequence[str]]
RATINGS = (("Model", "Power", "Weight"), ("A1", "12 W", "3.5 kg"), ("B20", "40 W", "7.0 kg"), ("C3", "8 W", "1.2 kg"))
SOME = "the of measured device and when it power supplies cover not before reading manual opened"


def put(text: str, left: float, top: float, width: float = 5.0, **more: Any) -> PageWord:
    """A word whose characters are all equally wide."""
    values: dict[str, Any] = {"size": 10, "font": "Serif", "bold": False, "italic": False} | more
    return PageWord(text, Box(left, top, left + width * len(text), top + 10), **values)


def words(text: str, left: float, top: float) -> list[PageWord]:
    """A line's words, of no monospaced font, with blanks between them."""
    found: list[PageWord] = []
    for number, part in enumerate(text.split()):
        found.append(put(part, left, top, 4.2 + 0.4 * ((len(part) + number) % 5)))
        left = found[-1].box.right + 2.5
    return found


def cells(rows: Sequence[Sequence[str]], lefts: Sequence[float], top: float, pitch: float = 14.0) -> list[PageWord]:
    """Words of cells, each row `pitch` points under the one before.

    "|" divides the lines of a cell, 11 points apart.
    """
    found: list[PageWord] = []
    for row in rows:
        for text, left in zip(row, lefts, strict=True):
            for number, line in enumerate(text.split("|")):
                found += words(line, left, top + 11 * number)
        top += pitch + 11 * max(text.count("|") for text in row)
    return found


def rule(left: float, top: float, right: float, bottom: float) -> Rule:
    """A rule half a point thick."""
    high, wide = (0.25, 0) if bottom - top < right - left else (0, 0.25)
    return Rule(Box(left - wide, top - high, right + wide, bottom + high))


def page(words: Sequence[PageWord], rules: Sequence[Rule] = (), **objects: Any) -> Page:
    """An A4 page."""
    return Page(1, 595.0, 842.0, tuple(words), tuple(rules), **objects)


def grid(xs: Sequence[float], ys: Sequence[float]) -> list[Rule]:
    return [rule(xs[0], y, xs[-1], y) for y in ys] + [rule(x, ys[0], x, ys[-1]) for x in xs]


def booktabs(left: float = 100.0, top: float = 100.0, rows: Rows = RATINGS, more: Sequence[PageWord] = ()) -> Page:
    lefts = [left + 100 * column for column in range(len(rows[0]))]
    right, bottom = left + 100 * len(rows[0]), top + 14 * len(rows) + 4
    return page([*cells(rows, lefts, top + 3), *more], [rule(left, y, right, y) for y in (top, top + 16, bottom)])


def prose(left: float, top: float, lines: int, length: int = 9) -> list[PageWord]:
    """A column of running text, its lines equally long as in print."""
    some, found = SOME.split(), []
    for number in range(lines):
        text = " ".join(some[(number * 5 + at) % len(some)] for at in range(length))
        line = words(text, left, top + 12 * number)
        extra = (left + length * 27 - line[-1].box.right) / (length - 1)
        for at, word in enumerate(line):
            box = word.box._replace(left=word.box.left + extra * at, right=word.box.right + extra * at)
            found.append(replace(word, box=box))
    return found


def lined(rows: Rows, lefts: Sequence[float], *ys: float) -> Page:
    """Cells between rules across the page."""
    return page(cells(rows, lefts, 103), [rule(100, y, 400, y) for y in ys])


def unbroken(rows: Rows) -> Rows:
    """Rows whose cells have one line each."""
    return tuple(tuple(cell.replace("|", " ").replace("oper- a", "opera") for cell in row) for row in rows)


def shades(top: float, *which: int, right: float = 370.0, pitch: float = 14.0) -> list[Box]:
    """Shades of rows, which touch each other where they follow each other."""
    return [Box(100, top + pitch * row, right, top + pitch * (row + 1)) for row in which]


def striped(rows: Rows, *around: PageWord) -> Page:
    """A table at 100 from the top: a shaded header, and every second row below it."""
    return page([*cells(rows, (104, 284), 102), *around], fills=shades(100, *range(0, len(rows), 2)))


COLUMNS = [100, 200, 300]
GRID = grid([*COLUMNS, 400], [100, 120, 140, 160, 180])
SPANNED = (("Model", "Ratings", ""), ("", "Power", "Weight"), ("A1", "12 W", "3.5 kg"), ("B2", "40 W", "7 kg"))
PARTLY_RULED = [*GRID[0:1], *GRID[2:6], *GRID[6:7], *GRID[8:9], rule(200, 120, 400, 120), rule(300, 120, 300, 180)]
RATED = [("Model", "Rated", "", "Limits", ""), ("", "Power", "Weight", "Low", "High")]
RATED += [("A1", "12", "3", "1", "9"), ("B2", "13", "4", "2", "8")]
RATED_RULES = [rule(160, 117, 265, 117), rule(280, 117, 385, 117), *(rule(100, y, 400, y) for y in (100, 133, 165))]
MODES = [("Option", "Meaning"), ("speed", "how fast the motor turns|when it is not loaded")]
MODES += [("mode", "one of the oper-|ating modes above"), ("lamp", "on or off")]
WRAPPED = [("Option", "Meaning of the option"), ("speed", "how fast the motor turns in each of the|modes when it is")]
WRAPPED += [("mode", "one of the modes that the table above|names"), ("lamp", "on or off")]
SPEEDS = [("Model", "Power", "Rated"), ("", "(W)", "speed"), ("A1", "12", "3"), ("B2", "40", "7"), ("C3", "8", "9")]
FIRSTS = [("Model", "Power", "Speed"), ("", "(W)", "Speed"), *SPEEDS[2:]]
SIGNS = [("Sign", "Meaning"), *((f"sign{n}", f"what {n} is") for n in range(6))]
NUMBERS = [[str(111 * (row + column)) for column in range(1, 5)] for row in range(8)]
NUMBER_WORDS = [put(text, 100 + 80 * c, 103 + 14 * r) for r, row in enumerate(NUMBERS) for c, text in enumerate(row)]
# a few names may have one width a character; "mm" is wider than any character of code could be
NAMES = ("Width", "Height", "Depth", "Total", "Weight", "Length", "Bottom")
WIDTHS = [("Quantity", "Value"), *((name, f"{100 + len(name)} mm") for name in NAMES)]
EQUALLY_WIDE = [
    put(part, left, 100 + 14 * row, width)
    for row, (name, value) in enumerate(WIDTHS)
    for part, left, width in zip((name, *value.split()), (100, 200, 217.5), (5, 5, 8), strict=False)
]
LETTERS = [("a", "b"), ("c", "d"), ("e", "f")]
ABOVE = [*words("Long heading text over", 160, 103), *words("sub title here", 300, 117)]
ABOVE += cells(LETTERS, [100, 400], 131)
HIGH = [("Name", "Value", "Use"), *((f"option{n}", f"v{n * 7}", f"case {n}") for n in range(45))]
TIGHT = words("a-rather-long-one", 113.5, 103 + 14 * 7) + words("what it does", 200, 103 + 14 * 7)  # ends right of 197
BOLD = [replace(word, bold=True) for word in cells(RATINGS[:1], COLUMNS, 100)]
SIDEWAYS = [*cells(RATINGS, [124, 204, 304], 103, 20), put("side", 104, 141, 2.5, upright=False)]
UNDER_A_CAPTION = [*words("Table 3: Ratings", 100, 80), *cells(RATINGS, COLUMNS, 100), *prose(100, 200, 20, 12)]
LEFT, RIGHT = booktabs(20), booktabs(340, rows=[row[:2] for row in RATINGS])
SIDE_BY_SIDE = [*words("Table 1: Left", 20, 80), *words("Table 2: Right", 340, 80), *LEFT.words, *RIGHT.words]

ROOM = [("What", "Figure"), ("Temperature, at least from", "6 degrees"), ("Temperature, at most up to", "46 degrees")]
ROOM += [
    ("Humidity of the air, up to", "85 %"),
    ("Height above the sea, up to", "2900 m"),
    ("Loudness near it", "61 dB"),
]
TASKS = [("Task", "Period"), ("Replace the|fan", "7750 operating|hours"), ("Save", "22 weeks"), ("Dry", "4000|hours")]
NEW = "The figures above are those of a new device in a dry place"
BESIDE = [word for at in range(12) for word in words("The pump moves the water on", 400, 96 + 12 * at)]
HALVES = [half for row in shades(100, *range(4)) for half in (row._replace(right=270), row._replace(left=270))]
FIVE = striped(ROOM[:5])
BELOW = [*FIVE.words, *words("Table 7: Size", 100, 184), *cells(ROOM[:3], (104, 284), 202)]
NEVER = "Never reach inside after the plug was pulled"
NOTES = [*words(NEVER, 104, 102), *words("The cover stays shut meanwhile", 104, 118), *words(NEVER, 104, 130)]
APART = [word for top in (102, 400) for row in (0, 1) for word in cells([ROOM[row]], (104, 284), top + 14 * row)]
ACROSS = words("Both tables hold for a new device in a dry place that stands on firm ground", 60, 145)
TWO = [*striped(ROOM[:3]).words, *ACROSS, *cells(ROOM[3:], (104, 284), 160)]

LISTED = [(f"{n} How the part number {n} is used", str(3 * n)) for n in range(1, 9)]
FRAMES = [*grid([100, 380], [100, 250]), *grid([112, 378], [124, 240]), rule(100, 124, 378, 124)]
PAIRS = [("Author", "M. Example"), ("Date", "1 May"), ("Version", "2.0"), ("Status", "final"), ("Pages", "12")]
CODE = ["def  f(x):", "x      = 1", "long  = 22", "return  x", "y      = 3", "z      = 4"]
CODE_WORDS = [
    put(part, 60 + 6 * line.index(part), 100 + 12 * n, 6, font="Courier")
    for n, line in enumerate(CODE)
    for part in line.split()
]
CASES: dict[str, tuple[Page, list[Rows], int]] = {  # page, rows of its tables, those of the header
    "full grid": (page(cells(RATINGS, [104, 204, 304], 103, 20), GRID), [RATINGS], 1),
    "what spans columns or rows stands in each of its cells": (
        page(cells(SPANNED, [104, 204, 304], 103, 20), PARTLY_RULED),
        [(("Model", "Ratings", "Ratings"), ("Model", *SPANNED[1][1:]), *SPANNED[2:])], 2,
    ),
    "rules above, below and under the header": (booktabs(), [RATINGS], 1),
    "a rule under a heading says which columns it spans": (
        page(cells(RATED, [100, 160, 220, 280, 340], 104, 16), RATED_RULES),
        [(("Model", "Rated", "Rated", "Limits", "Limits"), ("Model", *RATED[1][1:]), *RATED[2:])], 2,
    ),
    "a hyphen divides a word of a cell": (
        page(cells(MODES, [104, 204], 103, 20), grid([100, 200, 400], [100, 120, 151, 182, 202])), [MODES], 1
    ),
    "no rules between rows of two lines": (lined(WRAPPED, [104, 204], 100, 117, 182), [WRAPPED], 1),
    "units under names": (lined(FIRSTS, COLUMNS, 100, 130, 175), [FIRSTS], 2),
    "words that go on": (
        lined(SPEEDS, COLUMNS, 100, 130, 175), [[("Model", "Power (W)", "Rated speed"), *SPEEDS[2:]]], 1
    ),
    "numbers only are no code": (page(NUMBER_WORDS, [rule(95, y, 400, y) for y in (100, 116, 220)]), [NUMBERS], 1),
    "equally wide names are no code": (page(EQUALLY_WIDE, [rule(95, y, 300, y) for y in (98, 112, 212)]), [WIDTHS], 1),
    "words above that stand between the columns": (
        page(ABOVE, [rule(100, y, 450, y) for y in (100, 128, 176)]), [LETTERS], 1
    ),
    "as high as the page": (booktabs(rows=HIGH, top=60), [HIGH], 1),
    "a column starts where the text before ends": (
        page([*booktabs(rows=SIGNS).words, *TIGHT], [rule(100, y, 300, y) for y in (100, 116, 215)]),
        [[*SIGNS, ("a-rather-long-one", "what it does")]], 1,
    ),
    "parts of a symbol above each other": (
        booktabs(rows=SIGNS, more=[put("=", 220, 124, 6, font="Symbol")]),
        [[*SIGNS[:1], ("sign0", "what 0 is ="), *SIGNS[2:]]], 1
    ),
    "a word set sideways in a grid": (
        page(SIDEWAYS, GRID), [[*RATINGS[:2], ("side B20", *RATINGS[2][1:]), RATINGS[3]]], 1
    ),
    "no rules, and a header that stands out": (page([*BOLD, *cells(RATINGS[1:], COLUMNS, 114)]), [RATINGS], 1),
    "no rules under a caption": (page([*prose(100, 20, 4, 12), *UNDER_A_CAPTION]), [RATINGS], 1),
    "side by side": (page(SIDE_BY_SIDE, [*LEFT.rules, *RIGHT.rules]), [RATINGS, [row[:2] for row in RATINGS]], 1),
    "every second row shaded": (FIVE, [ROOM[:5]], 1),
    "the last row unshaded": (striped(ROOM), [ROOM], 1),
    "shaded cell by cell": (page(cells(ROOM[:4], (104, 284), 102), fills=HALVES), [ROOM[:4]], 1),
    "lines of a cell in its shade or between two": (
        page(cells(TASKS, (104, 284), 102), fills=[Box(100, 100, 370, 114), Box(100, 139, 370, 153)]), [TASKS], 1
    ),
    "text beside and below shades": (striped(ROOM, *BESIDE, *words(NEW, 100, 190)), [ROOM], 1),
    "text close below shades": (striped(ROOM[:5], *words(NEW, 104, 174)), [ROOM[:5]], 1),
    "shades of one width": (page(BELOW, fills=[*FIVE.fills, *shades(200, 0, 2)]), [ROOM[:5], ROOM[:3]], 1),
    "text across the sides of shades": (
        page(TWO, fills=shades(100, 0, 2) + shades(158, 0, 2)), [ROOM[:3], ROOM[3:]], 1
    ),
    "notes in boxes": (page(NOTES, fills=shades(100, 0, 2)), [], 0),
    "boxes apart": (page(APART, fills=[*shades(100, 0), *shades(398, 0)]), [], 0),
    "contents without dots": (lined([("Contents of this book", "1"), *LISTED], [100, 400], 100, 230), [], 0),
    "words in columns that nothing says are a table": (page(cells(PAIRS, [100, 180], 100)), [], 0),
    "a frame in a frame": (page([*words("Example 3:", 105, 104), *prose(120, 130, 8)], FRAMES), [], 0),
    "code": (page(CODE_WORDS, grid([50, 570], [95, 180])), [], 0),
}  # fmt: skip


CAPTIONS = {
    "no rules under a caption": ["Table 3: Ratings"],
    "side by side": ["Table 1: Left", "Table 2: Right"],
    "shades of one width": ["", "Table 7: Size"],
}


@pytest.mark.parametrize("name", CASES)
def test_the_tables_of_a_page(name: str) -> None:
    one, tables, header = CASES[name]
    found = [table for _, table in find_tables(one)]
    assert [table.rows for table in found] == [unbroken(rows) for rows in tables]
    assert {table.header_rows for table in found} <= {header}
    assert [table.caption for table in found] == CAPTIONS.get(name, [""] * len(tables))


LONG = ["Table 3: Ratings of the models that were", "measured at room temperature"]


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize(
    "lines",
    [["Table 3: Ratings of the models"], ["Tab. 3. Ratings"], ["TABLE IV. Ratings"], ["Table A.1 Ratings"], LONG,
     ["Table 3 shows the ratings."]],
)  # fmt: skip
def test_a_caption_above_or_below_belongs_to_the_table_and_a_sentence_does_not(lines: list[str], below: bool) -> None:
    top = 168 if below else 96 - 12 * len(lines)
    more = [word for at, text in enumerate(lines) for word in words(text, 100, top + 12 * at)]
    one = booktabs(more=[*more, *words("Table 3 shows what was measured.", 100, 300)])
    ((box, table),) = find_tables(one)
    assert (table.rows, table.page) == (RATINGS, 1)
    is_caption = "shows" not in lines[0]
    assert table.caption == " ".join(lines) * is_caption
    high = (top if is_caption and not below else 100, top + 12 * len(lines) - 2 if is_caption and below else 160)
    assert (box.left, box.right) == pytest.approx((100, 400), abs=1)
    assert (box.top, box.bottom) == pytest.approx(high, abs=1)


def test_ruled_boxes_with_the_caption_of_a_figure_are_a_drawing() -> None:
    ruled = grid([98, 198, 298, 398], [98, 114, 128, 142, 158])

    def drawn(text: str, top: float = 164, **more: Sequence[Box]) -> bool:
        one = page([*cells(RATINGS, [103, 203, 303], 101), *words(text, 103, top)], ruled, **more)
        return bool(ruled_figures(one, find_tables(one)))

    assert drawn("Fig. 2 Terminal block")
    assert not any(map(drawn, ("", "Table 2: Ratings", "Figure 2 shows the ratings")))
    # the caption belongs to the picture between
    assert not drawn("Fig. 2 Pump", 262, drawings=[Box(98, 162, 398, 260)])


@pytest.mark.parametrize("upright", [False, True])
def test_boxes_apart_that_lines_join_are_no_table(upright: bool) -> None:
    """Boxes of a diagram in two rows, joined from left to right and down; then turned: they are in two columns."""
    boxes = [Box(x, y, x + 60, y + 30) for x in (100, 180, 260) for y in (100, 165)]
    lines = {(x, y, x + 20, y) for y in (115, 180) for x in (160, 240)} | {(290, 130, 290, 165)}
    if upright:
        boxes = [Box(box.top, box.left, box.bottom, box.right) for box in boxes]
        lines = {(y1, x1, y2, x2) for x1, y1, x2, y2 in lines}
    for box in boxes:
        lines |= {(box.left, y, box.right, y) for y in (box.top, box.bottom)}
        lines |= {(x, box.top, x, box.bottom) for x in (box.left, box.right)}
    named = [word for box in boxes for word in words("Pump", box.left + 4, box.top + 10)]
    assert find_tables(page(named, [rule(*ends) for ends in lines])) == []


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("pitch", [17, 45])  # points between the lines of a product and the next one
def test_the_lines_of_a_product_are_one_cell(columns: int, pitch: float) -> None:
    """Products side by side without rules, as in a catalogue."""
    rows = [[f"Chair {3 * row + column}|Price {row} EUR|Made of wood" for column in range(columns)] for row in range(4)]
    found = cells(rows, [60.0 + 120 * column for column in range(columns)], 100, pitch)
    assert [table.rows for _, table in find_tables(page(found))] == [unbroken(rows)]


def test_raised_figures_in_a_column_of_numbers() -> None:
    found = cells([["Name", "Size"], ["Pump", "9\u00b2"], ["Valve", "10"], ["Motor", "11"]], [100, 200], 100)
    assert is_tabular(lines_of(found))


@pytest.mark.parametrize(
    "found",
    [
        prose(50, 100, 40) + prose(320, 100, 40),
        [word for n in range(12) for word in words(f"{n}. press the button and wait till it is lit", 60, 100 + 14 * n)],
        [word for n in range(9) for word in words(f"{n + 1} Chapter {'. ' * 30} {7 * n}", 60, 100 + 14 * n)],
        [word for n in range(9) for word in words("E = m c", 200, 100 + 30 * n) + words(f"({n})", 500, 100 + 30 * n)],
    ],
    ids=["two columns", "list", "table of contents", "equations"],
)
def test_what_is_no_table_between_rules_of_header_and_footer(found: list[PageWord]) -> None:
    bottom = max(word.box.bottom for word in found) + 4
    for rules in ([], [rule(50, 95, 560, 95), rule(50, bottom, 560, bottom)], grid([50, 570], [95, bottom])):
        assert find_tables(page(found, rules)) == []


_words = st.builds(
    lambda text, left, top: words(text, left, top)[0],
    st.text("abcXYZ019.,-()", min_size=1, max_size=12),
    st.floats(0, 580).map(lambda x: round(x / 20) * 20.0),
    st.floats(0, 800).map(lambda y: round(y / 12) * 12.0),
)
_rules = st.builds(
    lambda left, top, length, level: rule(left, top, left + length * level, top + length * (not level)),
    st.sampled_from([50, 150, 250, 400]), st.sampled_from([40, 100, 124, 300]), st.sampled_from([60, 200, 400]),
    st.booleans(),
)  # fmt: skip


@given(st.lists(_words, max_size=60), st.lists(_rules, max_size=14), st.floats(-20, 20), st.floats(-20, 20))
@settings(max_examples=60, deadline=None)
def test_tables_say_only_what_the_page_says_wherever_it_stands(
    found: list[PageWord], rules: list[Rule], x: float, y: float
) -> None:
    one = page(found, rules)
    tables = find_tables(one)
    for box, table in tables:
        assert len({len(row) for row in table.rows}) == 1
        inside = _letters(word.text for word in words_in(found, box))
        cells_ = [_letters([cell]) for row in table.rows for cell in row]
        assert all(cell <= inside for cell in cells_)  # nothing invented
        assert set(inside) == set().union(*cells_)  # nothing lost

    def moved(box: Box) -> Box:
        return Box(box.left + round(x), box.top + round(y), box.right + round(x), box.bottom + round(y))

    again = page([replace(word, box=moved(word.box)) for word in found], [Rule(moved(one.box)) for one in rules])
    assert [table.rows for _, table in find_tables(again)] == [table.rows for _, table in tables]


def _letters(texts: Iterable[str]) -> Counter[str]:
    """Letters without those that joining lines may take away."""
    return Counter(letter for text in texts for letter in text if letter not in " -")
