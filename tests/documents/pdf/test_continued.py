"""Tables that go on on the next page are one; what every page repeats is left out."""

from io import BytesIO
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate
from reportlab.platypus import Table as Flowable

from documents.left_out import LeftOut
from documents.pdf.continued import join_continued, without_repeated
from documents.pdf.lines import Line, Placed
from documents.pdf.page import Box
from documents.reading.pdf_reading import parse_pdf
from documents.records import Image, Table

HEAD = ("Part", "Price")
A, B, C = ("a", "1"), ("b", "2"), ("c", "3")
PLACE = (100.0, 100.0, 400.0, 300.0)
COLUMN = (50, 600, 280, 770)


def placed(page: int, *rows: tuple[str, ...], caption: str = "", box: tuple[float, ...] = PLACE) -> Placed:
    return Placed(Table(rows, 1, caption, page), Box(*box), page)


def line(text: str, page: int = 1) -> Line:
    return Line(text, Box(100, 50, 300, 60), page, 100, 400)


FIRST = placed(1, HEAD, A, caption="Table 2: Prices")
NEXT = placed(2, HEAD, B)
ON = [line("continued on next page"), line("A footnote")]


@pytest.mark.parametrize(
    ("items", "rows"),
    [
        ([FIRST, NEXT, placed(3, HEAD, C)], (HEAD, A, B, C)),  # with one header
        ([FIRST, placed(2, B, C)], (HEAD, A, B, C)),  # without the header all rows stay
        ([FIRST, *ON, placed(2, HEAD, B, caption="Table 2 (continued)"), line("The end", 2)], (HEAD, A, B)),
        # at the top of the next column, where a rule makes it wider than the words of the first one
        ([placed(1, HEAD, A, box=COLUMN), placed(1, HEAD, B, box=(305, 50, 545, 200))], (HEAD, A, B)),
    ],
)
def test_parts_are_one_table_and_what_says_so_is_left_out(items: list[Line | Placed], rows: tuple[Any, ...]) -> None:
    table, *rest = join_continued(items, LeftOut())
    assert isinstance(table, Placed)
    assert table.content == Table(rows, 1, items[0].content.caption, 1)  # type: ignore[union-attr]
    assert rest == [item for item in items if isinstance(item, Line) and "next page" not in item.text]


@pytest.mark.parametrize(
    "items",
    [
        [FIRST, placed(2, HEAD, B, caption="Table 3: More prices")],
        [FIRST, placed(3, HEAD, B)],  # not the next page
        [FIRST, placed(2, HEAD, B, box=(100, 100, 350, 300))],
        [FIRST, *(line("Text.", 2) for _ in range(9)), NEXT],
        [FIRST, placed(2, ("x", "y", "z"), ("1", "2", "3"))],
        [placed(1, HEAD, A, box=COLUMN), placed(1, B, C, box=(305, 50, 545, 200))],  # without the header
        *([placed(1, HEAD, A, box=COLUMN), placed(1, HEAD, B, box=box)]  # below, in the same column, much wider
          for box in ((305, 650, 545, 770), (50, 50, 280, 200), (305, 50, 580, 200))),
    ],
)  # fmt: skip
def test_other_tables_stay_apart(items: list[Line | Placed]) -> None:
    assert join_continued(items, LeftOut()) == items


def logo(page: int, caption: str = "") -> Placed:
    return Placed(Image(b"logo", ".png", caption, "", page), Box(50, 20, 100, 60), page)


def panel(page: int, *more: tuple[str, str]) -> Placed:
    return placed(page, ("Links", "Home"), ("Help", "Terms of use"), *more, box=(0, 0, 595, 90))


THREE = (1, 2, 3)
SHEETS = {page: placed(page, (f"item {page}", f"{page} mm"), ("color", "red" * page)) for page in range(1, 6)}
MOVED = {page: placed(page, HEAD, A, box=(100, 500, 400, 700) if page == 3 else PLACE) for page in THREE}


@pytest.mark.parametrize(
    ("pages", "stay"),
    [
        ({page: logo(page) for page in THREE}, ()),
        ({page: placed(page, HEAD, A) for page in THREE}, ()),
        ({page: logo(page) for page in (1, 2)}, (1, 2)),
        ({page: logo(page, "Figure 1") for page in THREE}, THREE),
        (MOVED, THREE),
        ({**{page: panel(page) for page in THREE}, 4: panel(4, ("Page 4", "")), 5: placed(5, HEAD, A)}, (5,)),
        (SHEETS, (*SHEETS,)),
    ],
    ids=["logos", "tables", "two", "captions", "moved", "panels with the page number", "sheets"],
)
def test_what_three_pages_repeat_is_left_out(pages: dict[int, Placed], stay: tuple[int, ...]) -> None:
    left = {page: [placed] if page in stay else [] for page, placed in pages.items()}
    assert without_repeated({page: [placed] for page, placed in pages.items()}) == left


MUST_NOT = "The motor must not run while the cover is open, as its fan would take in dust."


def test_a_real_file_with_a_table_over_three_pages_and_one_with_spans_and_a_paragraph() -> None:
    grid: list[Any] = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    style = getSampleStyleSheet()["BodyText"]
    rows = [["Part", "Length", "Weight"], *([f"P{n}", f"{3 * n} mm", f"{n / 8} kg"] for n in range(110))]
    spans = [*grid, ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]
    values = [["Part", "Values", ""], ["", "low", "high"], ["Motor", "230 V", Paragraph(MUST_NOT, style)]]
    before, after, end = (Paragraph(text, style) for text in ("These are the parts.", "After.", "Read this. " * 30))
    spanned = Flowable(values, [80, 100, 160], style=spans)
    story = [before, Flowable(rows, repeatRows=1, style=grid), after, PageBreak(), end, spanned, end]
    data = BytesIO()
    SimpleDocTemplate(data).build(story)
    document = parse_pdf(data.getvalue(), "parts.pdf")
    assert [block for block in document.blocks if isinstance(block, Table)] == [
        Table(tuple(map(tuple, rows)), 1, "", 1),
        Table((("Part", "Values", "Values"), ("Part", "low", "high"), ("Motor", "230 V", MUST_NOT)), 2, "", 5),
    ]
