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


def test_a_full_grid() -> None:
    one = page(cells(RATINGS, [104, 204, 304], 103, 20), grid([100, 200, 300, 400], [100, 120, 140, 160, 180]))
    ((box, table),) = find_tables(one)
    assert table.rows == RATINGS
    assert (table.header_rows, table.caption, table.page) == (1, "", 1)
    assert box == pytest.approx((100, 100, 400, 180), abs=1)


SPANNED = (("Model", "Ratings", ""), ("", "Power", "Weight"), ("A1", "12 W", "3.5 kg"), ("B2", "40 W", "7 kg"))
RATED = (
    ("Model", "Rated", "", "Limits", ""), ("", "Power", "Weight", "Low", "High"), ("A1", "12", "3", "1", "9"),
    ("B2", "13", "4", "2", "8"),
)  # fmt: skip
PARTLY_RULED = [
    *(rule(100, y, 400, y) for y in (100, 140, 160, 180)), rule(200, 120, 400, 120),
    *(rule(x, 100, x, 180) for x in (100, 200, 400)), rule(300, 120, 300, 180),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "header", "rest"),
    [
        # what spans columns or rows stands in each of its cells
        (page(cells(SPANNED, [104, 204, 304], 103, 20), PARTLY_RULED),
         (("Model", "Ratings", "Ratings"), ("Model", "Power", "Weight")), SPANNED[2:]),
        # rules above, below and under the header
        (booktabs(), RATINGS[:1], RATINGS[1:]),
        # a rule under a heading says which columns it spans
        (page(cells(RATED, [100, 160, 220, 280, 340], 104, 16),
              [*(rule(100, y, 400, y) for y in (100, 133, 165)), rule(160, 117, 265, 117), rule(280, 117, 385, 117)]),
         (("Model", "Rated", "Rated", "Limits", "Limits"), ("Model", "Power", "Weight", "Low", "High")),
         RATED[2:]),
    ],
    ids=["spans", "booktabs", "rules under headings"],
)  # fmt: skip
def test_rules_tell_header_and_spans(one: Page, header: Rows, rest: Rows) -> None:
    table = table_of(one)
    assert table.rows == (*header, *rest)
    assert table.header_rows == len(header)


def test_lines_of_a_cell_are_joined_also_where_a_hyphen_divides_a_word() -> None:
    head, last = ("Option", "Meaning"), ("lamp", "on or off")
    speed = ("speed", "how fast the motor turns|when it is not loaded")
    rows = (head, speed, ("mode", "one of the oper-|ating modes above"), last)
    in_grid = page(cells(rows, [104, 204], 103, 20), grid([100, 200, 400], [100, 120, 151, 182, 202]))
    joined = ("mode", "one of the operating modes above")
    assert rows_of(in_grid) == [(head, (speed[0], speed[1].replace("|", " ")), joined, last)]


def test_a_wrapped_cell_between_rules_without_lines_between_rows() -> None:
    rows = (
        ("Option", "Meaning of the option"),
        ("speed", "how fast the motor turns in each of the|modes when it is not loaded"),
        ("mode", "one of the modes that the table above|names"),
        ("lamp", "on or off"),
    )
    table = table_of(page(cells(rows, [104, 204], 103, 14), [rule(100, y, 400, y) for y in (100, 117, 182)]))
    assert table.rows == tuple((name, text.replace("|", " ")) for name, text in rows)


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


@pytest.mark.parametrize(
    ("last", "header"),
    [
        ("Speed", (("Model", "Power", "Speed"), ("", "(W)", "Speed"))),
        ("speed", (("Model", "Power (W)", "Rated speed"),)),
    ],
)
def test_units_under_names_are_a_header_row_and_words_that_go_on_are_not(last: str, header: Rows) -> None:
    first = ("Model", "Power", "Speed" if last == "Speed" else "Rated")
    rows = [first, ("", "(W)", last), ("A1", "12", "3"), ("B2", "40", "7"), ("C3", "8", "9")]
    table = table_of(page(cells(rows, [100, 200, 300], 103), [rule(100, y, 400, y) for y in (100, 130, 175)]))
    assert table.rows == (*header, *rows[2:])
    assert table.header_rows == len(header)


def test_parts_of_a_symbol_above_each_other_are_one_cell() -> None:
    rows = [("Sign", "Meaning"), *((f"sign{n}", f"what {n} is") for n in range(6))]
    one = booktabs(rows=rows)
    symbol = PageWord("=", Box(220, 125, 226, 133), 10, "Symbol", False, False)
    table = table_of(page([*one.words, symbol], one.rules))
    assert len(table.rows) == 7


def test_a_table_of_contents_without_dots_is_no_table() -> None:
    rows = [(f"{n} How the part number {n} is used", str(3 * n)) for n in range(1, 9)]
    found = cells([("Contents of this book", "1"), *rows], [100, 400], 103)
    assert rows_of(page(found, [rule(100, y, 420, y) for y in (100, 230)])) == []


def test_a_word_set_sideways_in_a_grid_is_in_its_cell() -> None:
    one = page(cells(RATINGS, [124, 204, 304], 103, 20), grid([100, 200, 300, 400], [100, 120, 140, 160, 180]))
    side = PageWord("side", Box(104, 141, 114, 159), 10, "Serif", False, False, upright=False)
    table = table_of(replace(one, words=(*one.words, side)))
    assert "side" in table.rows[2][0]


def test_a_table_of_numbers_only_is_no_code() -> None:
    rows = [[str(111 * (row + column)) for column in range(1, 5)] for row in range(8)]
    found = [
        PageWord(text, Box(100 + 80 * c, 103 + 14 * r, 115 + 80 * c, 113 + 14 * r), 10, "Serif", False, False)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
    ]
    one = page(found, [rule(95, y, 400, y) for y in (100, 116, 220)])
    assert rows_of(one) == [tuple(map(tuple, rows))]


def test_short_words_that_happen_to_be_equally_wide_are_no_code() -> None:
    """The few names of a table may have one width a character; "mm" is wider than any character of code could be."""
    names = ("Width", "Height", "Depth", "Weight", "Length", "Bottom", "Total")
    rows = [("Quantity", "Value"), *((name, f"{100 + 7 * at} mm") for at, name in enumerate(names))]
    found = [
        PageWord(part, Box(left, 100 + 14 * row, left + width * len(part), 110 + 14 * row), 10, "Serif", False, False)
        for row, (name, value) in enumerate(rows)
        for part, left, width in zip((name, *value.split()), (100, 200, 217.5), (5, 5, 8), strict=False)
    ]
    assert rows_of(page(found, [rule(95, y, 300, y) for y in (98, 112, 212)])) == [tuple(rows)]


def test_a_table_as_high_as_the_page() -> None:
    rows = [("Name", "Value", "Use"), *((f"option{n}", f"v{n * 7}", f"case {n}") for n in range(45))]
    table = table_of(booktabs(rows=rows, top=60))
    assert len(table.rows) == 46


def test_a_column_that_starts_where_the_text_before_ends() -> None:
    rows = [("Name", "Meaning"), *((f"option{n}", f"what {n} does") for n in range(6))]
    one = booktabs(rows=rows)
    tight = words("a-rather-long-one", 113.5, 103 + 14 * 7) + words("what it does", 200, 103 + 14 * 7)
    assert tight[0].box.right > 197
    rules = [rule(100, y, 300, y) for y in (100, 116, 215)]
    table = table_of(page([*one.words, *tight], rules))
    assert table.rows[-1] == ("a-rather-long-one", "what it does")


def test_a_table_without_rules_under_a_caption_or_with_a_header_that_stands_out() -> None:
    names, *body = (cells(rows, [100, 200, 300], top) for rows, top in ((RATINGS[:1], 100), (RATINGS[1:], 114)))
    assert rows_of(page([*(replace(word, bold=True) for word in names), *body[0]])) == [RATINGS]
    above, below = prose(100, 20, 4, 12), prose(100, 200, 20, 12)
    captioned = [*words("Table 3: Ratings", 100, 80), *cells(RATINGS, [100, 200, 300], 100)]
    table = table_of(page([*above, *captioned, *below]))
    assert table.rows == RATINGS
    assert table.caption == "Table 3: Ratings"


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("pitch", [17, 45])  # points between the lines of a product and the next one
def test_the_lines_of_a_product_are_one_cell(columns: int, pitch: float) -> None:
    """Products side by side without rules, as in a catalogue."""
    rows = [[f"Chair {3 * row + column}|Price {row} EUR|Made of wood" for column in range(columns)] for row in range(4)]
    found = cells(rows, [60.0 + 120 * column for column in range(columns)], 100, pitch)
    (table,) = rows_of(page(found))
    assert table == tuple(tuple(text.replace("|", " ") for text in row) for row in rows)


def test_raised_figures_in_a_column_of_numbers() -> None:
    found = cells([["Name", "Size"], ["Pump", "9\u00b2"], ["Valve", "10"], ["Motor", "11"]], [100, 200], 100)
    assert is_tabular(lines_of(found))


def test_words_in_columns_that_nothing_says_are_a_table() -> None:
    pairs = [("Author", "M. Example"), ("Date", "1 May"), ("Version", "2.0"), ("Status", "final"), ("Pages", "12")]
    assert rows_of(page(cells(pairs, [100, 180], 100))) == []


def test_a_frame_in_a_frame_is_no_table() -> None:
    text = [*words("Example 3:", 105, 104), *prose(120, 130, 8)]
    frames = grid([100, 380], [100, 250]) + grid([112, 378], [124, 240])
    assert rows_of(page(text, [*frames, rule(100, 124, 378, 124)])) == []


def test_a_real_page_with_spans_and_paragraphs_in_cells() -> None:
    style = getSampleStyleSheet()["BodyText"]
    long = Paragraph("The motor must not run while the cover is open, as its fan would take in dust.", style)
    data = [["Part", "Values", ""], ["", "low", "high"], ["Fan", "10 V", "12 V"], ["Motor", "230 V", long]]
    lines = [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]
    text = [Paragraph("Read this before. " * 30, style), Spacer(1, 20)]
    ((_, one),) = drawn_pages(story_pdf([*text, Flowable(data, [80, 100, 160], style=lines), *text]))
    table = table_of(one)
    assert table.rows == (
        ("Part", "Values", "Values"),
        ("Part", "low", "high"),
        ("Fan", "10 V", "12 V"),
        ("Motor", "230 V", "The motor must not run while the cover is open, as its fan would take in dust."),
    )
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


def test_code_in_a_frame_is_no_table() -> None:
    code = ["def  f(x):", "x      = 1", "long  = 22", "return  x", "y      = 3", "z      = 4"]
    found = [
        PageWord(part, Box(left, 100 + 12 * n, left + 6 * len(part), 110 + 12 * n), 10, "Courier", False, False)
        for n, line in enumerate(code)
        for part in line.split()
        for left in [60 + 6 * line.index(part)]
    ]
    assert find_tables(page(found, grid([50, 570], [95, 180]))) == []


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
