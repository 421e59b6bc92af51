"""Tables of pages: ruled grids, spanning cells, booktabs, lines of cells, captions; and what is no table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, Spacer
from reportlab.platypus import Table as Flowable

from documents.pdf.page import Box, Page, PageWord, Rule
from documents.pdf.table_lines import lines_of, words_in
from documents.pdf.tables import find_tables, ruled_figures
from documents.pdf.tabular import is_tabular
from documents.records import Table
from tests.helpers.hand_made_pages import cells, drawn_pages, moved, page, rule, story_pdf, words

Rows = tuple[tuple[str, ...], ...]
RATINGS = (("Model", "Power", "Weight"), ("A1", "12 W", "3.5 kg"), ("B20", "40 W", "7.0 kg"), ("C3", "8 W", "1.2 kg"))


def grid(xs: Sequence[float], ys: Sequence[float]) -> list[Rule]:
    return [rule(xs[0], y, xs[-1], y) for y in ys] + [rule(x, ys[0], x, ys[-1]) for x in xs]


GRID = grid([100, 200, 300, 400], [100, 120, 140, 160, 180])


def rows_of(one: Page) -> list[Rows]:
    return [table.rows for _, table in find_tables(one)]


def table_of(one: Page) -> Table:
    """The only table of a page."""
    ((_, table),) = find_tables(one)
    return table


def booktabs(left: float = 100.0, top: float = 100.0, rows: Sequence[Sequence[str]] = RATINGS) -> Page:
    lefts = [left + 100 * column for column in range(len(rows[0]))]
    right, bottom = left + 100 * len(rows[0]), top + 14 * len(rows) + 4
    rules = [rule(left, y, right, y) for y in (top, top + 16, bottom)]
    return page(cells(rows, lefts, top + 3), rules)


SOME = "the of measured device and when it power supplies cover not before reading manual opened"


def prose(left: float, top: float, lines: int, length: int = 9) -> list[PageWord]:
    """A column of running text, its lines equally long as in print."""
    some, found = SOME.split(), []
    for number in range(lines):
        line = words(" ".join(some[(number * 5 + at) % len(some)] for at in range(length)), left, top + 12 * number)
        extra = (left + length * 27 - line[-1].box.right) / (length - 1)
        for at, word in enumerate(line):
            box = word.box._replace(left=word.box.left + extra * at, right=word.box.right + extra * at)
            found.append(replace(word, box=box))
    return found


def put(text: str, left: float, top: float, width: float = 5.0, font: str = "Serif") -> PageWord:
    """A word whose characters are all equally wide."""
    return PageWord(text, Box(left, top, left + width * len(text), top + 10), 10, font, False, False)


def lined(rows: Sequence[Sequence[str]], lefts: Sequence[float], top: float, pitch: float, *ys: float) -> Page:
    """Cells between rules across the page."""
    return page(cells(rows, lefts, top, pitch), [rule(100, y, 400, y) for y in ys])


def unbroken(rows: Iterable[Sequence[str]]) -> Rows:
    """Rows whose cells have one line each."""
    return tuple(tuple(cell.replace("|", " ").replace("oper- a", "opera") for cell in row) for row in rows)


SPANNED = (("Model", "Ratings", ""), ("", "Power", "Weight"), ("A1", "12 W", "3.5 kg"), ("B2", "40 W", "7 kg"))
PARTLY_RULED = [
    rule(x1, y1, x2, y2)
    for x1, y1, x2, y2 in (
        *((100, y, 400, y) for y in (100, 140, 160, 180)), (200, 120, 400, 120),
        *((x, 100, x, 180) for x in (100, 200, 400)), (300, 120, 300, 180),
    )
]  # fmt: skip
RATED = [("Model", "Rated", "", "Limits", ""), ("", "Power", "Weight", "Low", "High")]
RATED += [("A1", "12", "3", "1", "9"), ("B2", "13", "4", "2", "8")]
RATED_RULES = [rule(160, 117, 265, 117), rule(280, 117, 385, 117), *(rule(100, y, 400, y) for y in (100, 133, 165))]
MODES = [("Option", "Meaning"), ("speed", "how fast the motor turns|when it is not loaded")]
MODES += [("mode", "one of the oper-|ating modes above"), ("lamp", "on or off")]
WRAPPED = [("Option", "Meaning of the option"), ("mode", "one of the modes that the table above|names")]
WRAPPED[1:1] = [("speed", "how fast the motor turns in each of the|modes when it is not loaded")]
SPEEDS = [("Model", "Power", "Rated"), ("", "(W)", "speed"), ("A1", "12", "3"), ("B2", "40", "7"), ("C3", "8", "9")]
FIRSTS = [("Model", "Power", "Speed"), ("", "(W)", "Speed"), *SPEEDS[2:]]
SIGNS = [("Sign", "Meaning"), *((f"sign{n}", f"what {n} is") for n in range(6))]
NUMBERS = [[str(111 * (row + column)) for column in range(1, 5)] for row in range(8)]
# a few names may have one width a character; "mm" is wider than any character of code could be
WIDTHS = [("Quantity", "Value"), *((name, f"{100 + len(name)} mm") for name in ("Width", "Height", "Depth", "Total"))]
WIDTHS += [(name, f"{107 + len(name)} mm") for name in ("Weight", "Length", "Bottom")]
EQUALLY_WIDE = [
    put(part, left, 100 + 14 * row, width)
    for row, (name, value) in enumerate(WIDTHS)
    for part, left, width in zip((name, *value.split()), (100, 200, 217.5), (5, 5, 8), strict=False)
]
ROWS_OF_LETTERS = [("a", "b"), ("c", "d"), ("e", "f")]
HIGH = [("Name", "Value", "Use"), *((f"option{n}", f"v{n * 7}", f"case {n}") for n in range(45))]
TIGHT = words("a-rather-long-one", 113.5, 103 + 14 * 7) + words("what it does", 200, 103 + 14 * 7)  # ends right of 197
BOLD = [replace(word, bold=True) for word in cells(RATINGS[:1], [100, 200, 300], 100)]
TABLES: dict[str, tuple[Page, Iterable[Sequence[str]], int]] = {  # page, rows, those of the header
    "full grid": (page(cells(RATINGS, [104, 204, 304], 103, 20), GRID), RATINGS, 1),
    "what spans columns or rows stands in each of its cells": (
        page(cells(SPANNED, [104, 204, 304], 103, 20), PARTLY_RULED),
        (("Model", "Ratings", "Ratings"), ("Model", *SPANNED[1][1:]), *SPANNED[2:]), 2,
    ),
    "rules above, below and under the header": (booktabs(), RATINGS, 1),
    "a rule under a heading says which columns it spans": (
        page(cells(RATED, [100, 160, 220, 280, 340], 104, 16), RATED_RULES),
        (("Model", "Rated", "Rated", "Limits", "Limits"), ("Model", *RATED[1][1:]), *RATED[2:]), 2,
    ),
    "a hyphen divides a word of a cell": (
        page(cells(MODES, [104, 204], 103, 20), grid([100, 200, 400], [100, 120, 151, 182, 202])), MODES, 1
    ),
    "no rules between rows of two lines": (
        lined([*WRAPPED, ("lamp", "on or off")], [104, 204], 103, 14, 100, 117, 182),
        [*WRAPPED, ("lamp", "on or off")], 1,
    ),
    "units under names": (lined(FIRSTS, [100, 200, 300], 103, 14, 100, 130, 175), FIRSTS, 2),
    "words that go on": (
        lined(SPEEDS, [100, 200, 300], 103, 14, 100, 130, 175),
        [("Model", "Power (W)", "Rated speed"), *SPEEDS[2:]], 1,
    ),
    "numbers only are no code": (
        page([put(text, 100 + 80 * c, 103 + 14 * r) for r, row in enumerate(NUMBERS) for c, text in enumerate(row)],
             [rule(95, y, 400, y) for y in (100, 116, 220)]), NUMBERS, 1,
    ),
    "equally wide names are no code": (page(EQUALLY_WIDE, [rule(95, y, 300, y) for y in (98, 112, 212)]), WIDTHS, 1),
    "words above that stand between the columns": (
        page([*words("Long heading text over", 160, 103), *words("sub title here", 300, 117),
              *cells(ROWS_OF_LETTERS, [100, 400], 131)], [rule(100, y, 450, y) for y in (100, 128, 176)]),
        ROWS_OF_LETTERS, 1,
    ),
    "as high as the page": (booktabs(rows=HIGH, top=60), HIGH, 1),
    "a column starts where the text before ends": (
        page([*booktabs(rows=SIGNS).words, *TIGHT], [rule(100, y, 300, y) for y in (100, 116, 215)]),
        [*SIGNS, ("a-rather-long-one", "what it does")], 1,
    ),
    "no rules, and a header that stands out": (page([*BOLD, *cells(RATINGS[1:], [100, 200, 300], 114)]), RATINGS, 1),
}  # fmt: skip


@pytest.mark.parametrize(("one", "rows", "header"), TABLES.values(), ids=TABLES)
def test_the_rows_and_the_header_of_a_table(one: Page, rows: Iterable[Sequence[str]], header: int) -> None:
    table = table_of(one)
    assert table.rows == unbroken(rows)
    assert table.header_rows == header


def test_a_table_has_its_page_and_its_place() -> None:
    ((box, table),) = find_tables(TABLES["full grid"][0])
    assert (table.caption, table.page) == ("", 1)
    assert box == pytest.approx((100, 100, 400, 180), abs=1)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize(
    "text", ["Table 3: Ratings of the models", "Tab. 3. Ratings", "TABLE IV. Ratings", "Table A.1 Ratings"]
)
def test_a_caption_above_or_below_belongs_to_the_table(text: str, below: bool) -> None:
    one = booktabs()
    top = 168 if below else 80
    captioned = page(
        [*one.words, *words(text, 100, top), *words("Table 3 shows what was measured.", 100, 300)], one.rules
    )
    ((box, table),) = find_tables(captioned)
    assert table.caption == text
    assert table.rows == RATINGS
    assert box.top <= top
    assert box.bottom >= top + 10


def test_ruled_boxes_with_the_caption_of_a_figure_are_a_drawing() -> None:
    ruled = grid([98, 198, 298, 398], [98, 114, 128, 142, 158])
    read = cells(RATINGS, [103, 203, 303], 101)

    def drawn(text: str, top: float = 164, **more: Sequence[Box]) -> bool:
        one = page([*read, *words(text, 103, top)], ruled, **more)
        return bool(ruled_figures(one, find_tables(one)))

    assert drawn("Fig. 2 Terminal block")
    assert not any(map(drawn, ("", "Table 2: Ratings", "Figure 2 shows the ratings")))
    # the caption belongs to the picture between
    assert not drawn("Fig. 2 Pump", 262, drawings=[Box(98, 162, 398, 260)])


@pytest.mark.parametrize("upright", [False, True])
def test_boxes_apart_that_lines_join_are_no_table(upright: bool) -> None:
    """Boxes of a diagram in two rows, joined from left to right and down.

    Then turned, so that they are in two columns.
    """
    boxes = [Box(x, y, x + 60, y + 30) for x in (100, 180, 260) for y in (100, 165)]
    lines = [(x, y, x + 20, y) for y in (115, 180) for x in (160, 240)] + [(290, 130, 290, 165)]
    if upright:
        boxes = [Box(box.top, box.left, box.bottom, box.right) for box in boxes]
        lines = [(y1, x1, y2, x2) for x1, y1, x2, y2 in lines]
    sides = [
        side
        for box in boxes
        for y in (box.top, box.bottom)
        for x in (box.left, box.right)
        for side in ((box.left, y, box.right, y), (x, box.top, x, box.bottom))
    ]
    named = [word for box in boxes for word in words("Pump", box.left + 4, box.top + 10)]
    assert rows_of(page(named, [rule(*ends) for ends in {*sides, *lines}])) == []


@pytest.mark.parametrize(
    ("lines", "caption"),
    [
        (["Table 3 shows the ratings."], ""),
        (["Table 3: Ratings of the models that were", "measured at room temperature"],
         "Table 3: Ratings of the models that were measured at room temperature"),
    ],
)  # fmt: skip
def test_a_sentence_is_no_caption_and_a_caption_may_have_several_lines(lines: list[str], caption: str) -> None:
    one = booktabs()
    above = [word for at, text in enumerate(reversed(lines)) for word in words(text, 100, 84 - 12 * at)]
    ((box, table),) = find_tables(page([*above, *one.words], one.rules))
    assert table.caption == caption
    assert (box.top >= 99) == (not caption)


def test_two_tables_side_by_side_have_their_own_captions() -> None:
    left, right = booktabs(20), booktabs(340, rows=[row[:2] for row in RATINGS])
    captions = [*words("Table 1: Left", 20, 80), *words("Table 2: Right", 340, 80)]
    found = find_tables(page([*captions, *left.words, *right.words], [*left.rules, *right.rules]))
    assert [(table.caption, len(table.rows[0])) for _, table in found] == [("Table 1: Left", 3), ("Table 2: Right", 2)]


def test_parts_of_a_symbol_above_each_other_are_one_cell() -> None:
    one, symbol = booktabs(rows=SIGNS), PageWord("=", Box(220, 125, 226, 133), 10, "Symbol", False, False)
    assert len(table_of(page([*one.words, symbol], one.rules)).rows) == 7


def test_a_word_set_sideways_in_a_grid_is_in_its_cell() -> None:
    side = PageWord("side", Box(104, 141, 114, 159), 10, "Serif", False, False, upright=False)
    assert "side" in table_of(page([*cells(RATINGS, [124, 204, 304], 103, 20), side], GRID)).rows[2][0]


def test_a_table_without_rules_under_a_caption() -> None:
    above, below = prose(100, 20, 4, 12), prose(100, 200, 20, 12)
    captioned = [*words("Table 3: Ratings", 100, 80), *cells(RATINGS, [100, 200, 300], 100)]
    table = table_of(page([*above, *captioned, *below]))
    assert (table.rows, table.caption) == (RATINGS, "Table 3: Ratings")


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("pitch", [17, 45])  # points between the lines of a product and the next one
def test_the_lines_of_a_product_are_one_cell(columns: int, pitch: float) -> None:
    """Products side by side without rules, as in a catalogue."""
    rows = [[f"Chair {3 * row + column}|Price {row} EUR|Made of wood" for column in range(columns)] for row in range(4)]
    found = cells(rows, [60.0 + 120 * column for column in range(columns)], 100, pitch)
    assert rows_of(page(found)) == [unbroken(rows)]


def test_raised_figures_in_a_column_of_numbers() -> None:
    found = cells([["Name", "Size"], ["Pump", "9\u00b2"], ["Valve", "10"], ["Motor", "11"]], [100, 200], 100)
    assert is_tabular(lines_of(found))


LISTED = [(f"{n} How the part number {n} is used", str(3 * n)) for n in range(1, 9)]
FRAMES = [*grid([100, 380], [100, 250]), *grid([112, 378], [124, 240]), rule(100, 124, 378, 124)]
PAIRS = [("Author", "M. Example"), ("Date", "1 May"), ("Version", "2.0"), ("Status", "final"), ("Pages", "12")]
CODE = ["def  f(x):", "x      = 1", "long  = 22", "return  x", "y      = 3", "z      = 4"]
CODE_WORDS = [
    put(part, 60 + 6 * line.index(part), 100 + 12 * n, 6, "Courier")
    for n, line in enumerate(CODE)
    for part in line.split()
]


@pytest.mark.parametrize(
    "one",
    [
        lined([("Contents of this book", "1"), *LISTED], [100, 400], 103, 14, 100, 230),
        page(cells(PAIRS, [100, 180], 100)),
        page([*words("Example 3:", 105, 104), *prose(120, 130, 8)], FRAMES),
        page(CODE_WORDS, grid([50, 570], [95, 180])),
    ],
    ids=["contents without dots", "words in columns that nothing says are a table", "a frame in a frame", "code"],
)
def test_what_is_no_table(one: Page) -> None:
    assert find_tables(one) == []


MUST_NOT = "The motor must not run while the cover is open, as its fan would take in dust."


def test_a_real_page_with_spans_and_paragraphs_in_cells() -> None:
    style = getSampleStyleSheet()["BodyText"]
    data = [["Part", "Values", ""], ["", "low", "high"], ["Fan", "10 V", "12 V"]]
    data.append(["Motor", "230 V", Paragraph(MUST_NOT, style)])
    lines = [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]
    text = [Paragraph("Read this before. " * 30, style), Spacer(1, 20)]
    ((_, one),) = drawn_pages(story_pdf([*text, Flowable(data, [80, 100, 160], style=lines), *text]))
    table = table_of(one)
    assert table.rows[:3] == (("Part", "Values", "Values"), ("Part", "low", "high"), ("Fan", "10 V", "12 V"))
    assert table.rows[3:] == (("Motor", "230 V", MUST_NOT),)
    assert table.header_rows == 2


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
    assert find_tables(page(found)) == []
    bottom = max(word.box.bottom for word in found) + 4
    assert find_tables(page(found, [rule(50, 95, 560, 95), rule(50, bottom, 560, bottom)])) == []
    assert find_tables(page(found, grid([50, 570], [95, bottom]))) == []


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
    assert rows_of(moved(one, round(x), round(y))) == [table.rows for _, table in tables]


def _letters(texts: Iterable[str]) -> Counter[str]:
    """Letters without those that joining lines may take away."""
    return Counter(letter for text in texts for letter in text if letter not in " -")
