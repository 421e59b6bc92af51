"""Lines joined to paragraphs, items of lists and code."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from documents.left_out import LeftOut
from documents.pdf.blocks import blocks
from documents.pdf.footnotes import footnotes
from documents.pdf.headings import FoundHeading
from documents.pdf.lines import Line, Placed
from documents.pdf.page import Box
from documents.pdf.spacing import Body
from documents.records import Block, Heading, Image, Paragraph, Table
from tests.helpers.pdf_lines import LEADING, line, prose

BODY = Body(size=10, font="Times", leading=LEADING)
FULL = "The pump moves the water through the housing while the motor"


def read(items: Sequence[Line | Placed], headings: Sequence[FoundHeading] = ()) -> list[Block]:
    return blocks(items, headings, footnotes(items, BODY), set(), BODY, LeftOut())


def texts(items: Sequence[Line | Placed]) -> list[str]:
    return [block.text for block in read(items) if isinstance(block, Paragraph)]


def test_lines_of_one_paragraph_are_one_line() -> None:
    assert read([*prose(100, 2), line("turns.", 124)]) == [Paragraph(f"{FULL} {FULL} turns.", 1)]


def test_a_gap_divides_paragraphs() -> None:
    assert texts([line(FULL, 100), line(FULL, 118)]) == [FULL, FULL]


def test_an_indent_divides_paragraphs() -> None:
    assert texts([line(FULL, 100), line("It turns.", 112), line(FULL, 124, left=62), line("on.", 136)]) == [
        f"{FULL} It turns.",
        f"{FULL} on.",
    ]


def test_a_short_last_line_divides_paragraphs_without_indent_or_gap() -> None:
    assert texts([line(FULL, 100), line("turns.", 112), line("Oil is changed yearly.", 124)]) == [
        f"{FULL} turns.",
        "Oil is changed yearly.",
    ]


def test_a_paragraph_goes_on_in_the_next_column_and_on_the_next_page() -> None:
    second = {"left": 400.0, "column_left": 400.0, "column_right": 700.0}
    items = [line(FULL, 700), line("turns slowly and the " * 3, 90, **second), line("stops.", 80, page=2)]
    assert texts(items) == [f"{FULL} {('turns slowly and the ' * 3).strip()} stops."]


def test_a_sentence_s_end_at_the_foot_of_a_page_ends_the_paragraph() -> None:
    assert texts([line(f"{FULL}.", 700), line("Oil is changed.", 80, page=2)]) == [f"{FULL}.", "Oil is changed."]


def test_a_footnote_and_a_figure_stand_behind_the_paragraph_that_goes_on_after_them() -> None:
    image = Image(b"png", ".png", page=2)
    items = [
        line(FULL, 600),
        line("1 Of the year before.", 700, size=8),
        line("2 Of this year.", 710, size=8),
        Placed(image, Box(50, 50, 350, 90), 2),
        line("turns.", 110, page=2),
    ]
    assert read(items) == [
        Paragraph(f"{FULL} turns.", 1),
        Paragraph("1 Of the year before.", 1),
        Paragraph("2 Of this year.", 1),
        image,
    ]


def test_items_of_a_list_are_lines_of_one_paragraph() -> None:
    items = [
        line("Check:", 100),
        line("\u2022 " + FULL[:-2], 116, left=60),
        line("and its fan", 128, left=70),
        line("\u2022 the valve", 144, left=60),
        line("Then start.", 165),
    ]
    assert texts(items) == ["Check:", f"- {FULL[:-2]} and its fan\n- the valve", "Then start."]


def test_numbers_of_items_stay() -> None:
    items = [line("Do this:", 100), line("1. Open it.", 112), line("2) Close it.", 124), line("(a) Look.", 136)]
    assert texts(items) == ["Do this:", "1. Open it.\n2. Close it.\n- (a) Look."]


def test_a_number_at_the_beginning_of_a_line_by_chance_is_no_item() -> None:
    assert texts([line("The motor has a diameter of about the same as the one of", 100), line("3. class.", 112)]) == [
        "The motor has a diameter of about the same as the one of 3. class."
    ]


def test_a_unit_below_the_decimals_of_its_number_is_no_item() -> None:
    assert (
        len(
            texts(
                [
                    *prose(100, 3),
                    line("and the power that is drawn in standby is always 7.4", 136),
                    line("W. Any key ends standby.", 148),
                ]
            )
        )
        == 1
    )


def test_code_keeps_its_lines_and_indents() -> None:
    code = {"monospaced": True, "font": "Courier"}
    items = [
        line("if x:", 100, **code),
        line("run()", 112, left=70, **code),
        line("end", 136, **code),
        line("Text.", 155),
    ]
    assert read(items) == [Paragraph("if x:\n    run()\n\nend", 1, code=True), Paragraph("Text.", 1)]


def test_a_line_of_prose_that_ends_in_a_monospaced_word_goes_on() -> None:
    items = [line(FULL, 100), line("revtex.", 112, monospaced=True, font="Courier")]
    assert texts(items) == [f"{FULL} revtex."]


def test_headings_and_what_is_left_out() -> None:
    items = [line("Contents", 60), line("1 Pumps", 100, size=14), line("and motors", 116, size=14), line("Text.", 140)]
    found = blocks(items, [FoundHeading(1, 2, "1 Pumps and motors", 2, 1)], set(), {0}, BODY, LeftOut())
    assert found == [Heading("1 Pumps and motors", 2, 1), Paragraph("Text.", 1)]


def test_a_table_ends_the_paragraph_before_only_where_that_ends() -> None:
    table = Table((("a",),), page=1)
    placed = Placed(table, Box(50, 110, 300, 200), 1)
    assert read([line("Text.", 100), placed, line("More.", 220)]) == [
        Paragraph("Text.", 1),
        table,
        Paragraph("More.", 1),
    ]


any_line = st.builds(
    line,
    st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=30).filter(
        lambda text: text.split()[:1] not in ([], ["o"])  # a word "o" at a line's beginning is a bullet
    ),
    st.floats(0, 800),
    st.floats(50, 300),
    st.sampled_from([8.0, 10.0, 14.0]),
    page=st.integers(1, 3),
    bold=st.booleans(),
    monospaced=st.booleans(),
)


@given(st.lists(any_line, max_size=25))
def test_any_lines_are_read_and_no_letter_is_lost(items: list[Line]) -> None:
    def letters(parts: list[str]) -> list[str]:
        return [char for part in parts for char in part if char.isalnum()]

    assert sorted(letters(texts(items))) == sorted(letters([item.text for item in items]))
