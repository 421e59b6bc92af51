"""Tables that go on on the next page are one; what every page repeats is left out."""

from dataclasses import replace
from typing import Any

from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph
from reportlab.platypus import Table as Flowable

from documents.left_out import LeftOut
from documents.pdf.continued import join_continued, without_repeated
from documents.pdf.lines import Line, Placed
from documents.pdf.page import Box
from documents.reading.pdf_reading import parse_pdf
from documents.records import Image, Table
from tests.helpers.hand_made_pages import story_pdf

HEAD = ("Part", "Price")


def placed(page: int, rows: tuple[tuple[str, ...], ...], caption: str = "", right: float = 400) -> Placed:
    return Placed(Table((HEAD, *rows), 1, caption, page), Box(100, 100, right, 300), page)


def line(text: str, page: int = 1) -> Line:
    return Line(text, Box(100, 50, 300, 60), page, 100, 400)


def tables(items: list[Line | Placed]) -> list[Table]:
    return [item.content for item in items if isinstance(item, Placed) and isinstance(item.content, Table)]


def test_parts_on_following_pages_are_one_table_with_one_header() -> None:
    parts = [placed(1, (("a", "1"),), "Table 2: Prices"), placed(2, (("b", "2"),)), placed(3, (("c", "3"),))]
    (table,) = tables(join_continued(parts, LeftOut()))
    assert table == Table((HEAD, ("a", "1"), ("b", "2"), ("c", "3")), 1, "Table 2: Prices", 1)


def test_a_part_without_the_header_keeps_all_its_rows() -> None:
    second = Placed(Table((("b", "2"), ("c", "3")), 1, "", 2), Box(100, 100, 400, 300), 2)
    (table,) = tables(join_continued([placed(1, (("a", "1"),)), second], LeftOut()))
    assert table.rows == (HEAD, ("a", "1"), ("b", "2"), ("c", "3"))


def test_what_says_that_a_table_goes_on_is_left_out_and_the_same_number_continues_it() -> None:
    first, second = placed(1, (("a", "1"),), "Table 2: Prices"), placed(2, (("b", "2"),), "Table 2 (continued)")
    items = [first, line("continued on next page"), line("A footnote"), second, line("The end", 2)]
    joined = join_continued(items, LeftOut())
    assert [item.text for item in joined if isinstance(item, Line)] == ["A footnote", "The end"]
    assert len(tables(joined)) == 1


def test_a_part_at_the_top_of_the_next_column_goes_on_under_the_same_header() -> None:
    """The second part's rule makes it wider than the words of the first one."""
    first = Placed(Table((HEAD, ("a", "1")), 1, "Table 2: Prices", 1), Box(50, 600, 280, 770), 1)
    second = Placed(Table((HEAD, ("b", "2")), 1, "", 1), Box(305, 50, 545, 200), 1)
    (table,) = tables(join_continued([first, second], LeftOut()))
    assert table == Table((HEAD, ("a", "1"), ("b", "2")), 1, "Table 2: Prices", 1)
    other_header = replace(second, content=Table((("b", "2"), ("c", "3")), 1, "", 1))
    below, same_column, much_wider = (305, 650, 545, 770), (50, 50, 280, 200), (305, 50, 580, 200)
    boxed = [replace(second, box=Box(*edges)) for edges in (below, same_column, much_wider)]
    for apart in (other_header, *boxed):
        assert len(tables(join_continued([first, apart], LeftOut()))) == 2


def test_other_tables_stay_apart() -> None:
    first = placed(1, (("a", "1"),), "Table 2: Prices")
    others: list[list[Line | Placed]] = [
        [placed(2, (("b", "2"),), "Table 3: More prices")],
        [placed(3, (("b", "2"),))],  # not the next page
        [placed(2, (("b", "2"),), right=350)],
        [*(line("Text.", 2) for _ in range(9)), placed(2, (("b", "2"),))],
        [Placed(Table((("x", "y", "z"), ("1", "2", "3")), 1, "", 2), Box(100, 100, 400, 300), 2)],
    ]
    for rest in others:
        assert join_continued([first, *rest], LeftOut()) == [first, *rest]


def test_what_three_pages_repeat_is_left_out_unless_it_has_a_caption() -> None:
    def logo(page: int, left: float = 50.0, caption: str = "") -> Placed:
        return Placed(Image(b"logo", ".png", caption, "", page), Box(left, 20, left + 50, 60), page)

    pages = {page: [logo(page), placed(page, (("a", "1"),))] for page in (1, 2, 3)}
    assert without_repeated(pages) == {1: [], 2: [], 3: []}
    assert without_repeated({1: pages[1], 2: pages[2]}) == {1: pages[1], 2: pages[2]}
    named = {page: [logo(page, caption="Figure 1")] for page in (1, 2, 3)}
    assert without_repeated(named) == named
    moved: dict[int, list[Placed]] = {page: [placed(page, (("a", "1"),), right=400)] for page in (1, 2)}
    moved[3] = [Placed(moved[1][0].content, Box(100, 500, 400, 700), 3)]
    assert without_repeated(moved) == moved


def test_a_running_panel_with_the_page_number_in_it_is_left_out_too() -> None:
    def panel(page: int, *more: str) -> Placed:
        rows = (("Links", "Home"), ("Help", "Terms of use"), *((word, "") for word in more))
        return Placed(Table(rows, 1, "", page), Box(0, 0, 595, 90), page)

    pages = {page: [panel(page)] for page in (1, 2, 3)} | {4: [panel(4, "Page 4")], 5: [placed(5, (("a", "1"),))]}
    assert without_repeated(pages) == {1: [], 2: [], 3: [], 4: [], 5: pages[5]}
    sheets = {page: [placed(page, ((f"item {page}", f"{page} mm"), ("color", "red" * page)))] for page in range(1, 6)}
    assert without_repeated(sheets) == sheets


def test_a_real_file_with_a_table_over_three_pages() -> None:
    rows = [["Part", "Length", "Weight"], *([f"P{n}", f"{3 * n} mm", f"{n / 8} kg"] for n in range(110))]
    lines: list[Any] = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    style = getSampleStyleSheet()["BodyText"]
    before, after, end = (Paragraph(text, style) for text in ("These are the parts.", "After.", "The end."))
    story = [before, Flowable(rows, repeatRows=1, style=lines), after, PageBreak(), end]
    document = parse_pdf(story_pdf(story), "parts.pdf")
    (table,) = [block for block in document.blocks if isinstance(block, Table)]
    assert table.rows == tuple(map(tuple, rows))
    assert table.page == 1
