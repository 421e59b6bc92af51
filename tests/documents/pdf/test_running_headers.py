"""Running headers, footers and page numbers."""

from typing import Any

import pytest

from documents.pdf.lines import Line
from documents.pdf.running_headers import running
from tests.helpers.pdf_lines import line, prose

HEIGHT = 800.0


def pages(count: int, *edges: Line) -> list[Line]:
    """Pages of text whose first and last lines differ, each with the given lines; "#" is the page's number."""
    found = []
    for number in range(1, count + 1):
        found += [line(edge.text.replace("#", str(number)), edge.baseline, page=number) for edge in edges]
        found += [line(f"Text {'abcdefghijklmnopqrstuvwxyz'[number % 26]} begins", 100, page=number)]
        found += prose(112, 40, page=number)
    return found


def left_out(pieces: list[Line]) -> list[str]:
    found = running(pieces, {piece.page: HEIGHT for piece in pieces})
    return [pieces[at].text for at in sorted(found)]


def test_a_header_and_a_counting_footer() -> None:
    assert left_out(pages(4, line("Pump Manual", 30), line("Page # of 4", 770))) == [
        text for number in range(1, 5) for text in ("Pump Manual", f"Page {number} of 4")
    ]


def test_headers_of_left_and_right_pages() -> None:
    pieces = pages(8)
    for number in range(1, 9):
        pieces.append(line(f"{number} Pump Manual" if number % 2 else f"Chapter 2: Parts {number}", 30, page=number))
    assert len(left_out(pieces)) == 8


def test_two_rows_of_headers() -> None:
    assert len(left_out(pages(5, line("Example Pumps Ltd", 20), line("All rights reserved", 32)))) == 10


def test_roman_numerals_count_too() -> None:
    pieces = pages(4)
    pieces += [line(numeral, 770, page=number) for number, numeral in enumerate(["iii", "iv", "v", "vi"], 1)]
    assert left_out(pieces) == ["iii", "iv", "v", "vi"]


NAMES = ("Unpacking", "Setting up", "Care", "Facts and figures", "Parts and service")


def sections(**header: Any) -> list[Line]:
    """Pages with the name of their section at the top, where each section begins on its page."""
    pieces = pages(5)
    for number, name in enumerate(NAMES, 1):
        pieces.append(line(name, 30, page=number, **header))
        pieces.append(line(name, 300, size=14, page=number, bold=True))
    return pieces


def test_the_names_of_sections_in_small_print_at_the_top_of_their_pages() -> None:
    assert left_out(sections(size=8)) == list(NAMES)


def test_names_of_sections_that_now_and_then_begin_the_text_stay() -> None:
    """Below a running header, or where most pages begin with other text."""
    pieces = sections(size=8)
    below = [*pieces, *(line("Pump Manual", 20, page=number) for number in range(1, 6))]
    assert set(left_out(below)) == {"Pump Manual"}
    more = [line(f"Another page of text, the {name}", 30, size=8, page=6 + at) for at, name in enumerate("abcdefgh")]
    assert left_out([*pieces, *more]) == []


def test_headings_that_name_others_again_stay() -> None:
    assert left_out(sections(size=13, bold=True)) == []


def test_text_in_the_middle_of_pages_stays() -> None:
    assert left_out(pages(5, line("Description", 400))) == []


def test_headings_that_begin_pages_now_and_then_stay() -> None:
    """The same heading at the top of some pages, below a running header that is on all of them."""
    pieces = pages(30, line("Pump Manual", 30))
    pieces += [line("Description", 80, size=12, page=number, bold=True) for number in (3, 4, 6, 9, 11, 13, 17, 22, 24)]
    assert "Description" not in left_out(pieces)


def test_numbered_headings_that_begin_pages_stay() -> None:
    pieces = pages(3)
    pieces += [line(f"{number} Section", 40, size=16, page=number) for number in range(1, 4)]
    assert left_out(pieces) == []


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_runs_on_a_single_page(count: int) -> None:
    assert left_out(pages(count, line("Pump Manual", 30), line("1", 770))) == []


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(
    ("first", "baseline"),
    [
        ("Question #: Which valve of pump # must be closed?", 88),  # the next line's distance
        ("In 199# the factory moved to the harbour", 88),
        ("199# was the year of the new factory", 88),
        ("Switch off the pump before you open it.", 84),  # a paragraph's distance
        ("Report number # says that the pump of unit # failed.", 60),  # further away, but a sentence
    ],
)
def test_a_page_s_first_line_of_text_stays_whatever_its_numbers_count(count: int, first: str, baseline: float) -> None:
    assert left_out(pages(count, line(first, baseline))) == []


def test_a_page_s_last_line_of_text_stays() -> None:
    pieces = pages(4)
    for number, name in enumerate(("left", "right", "upper", "lower"), 1):
        pieces += [line(f"the {name} pump", 748, page=number), line("moves water to", 760, page=number)]
        pieces.append(line(f"unit {number}", 772, page=number))
    assert left_out(pieces) == []


def test_a_heading_in_large_letters_that_many_chapters_have_stays() -> None:
    pieces = pages(9) + [line("Exercises", 60, size=16, page=number) for number in (2, 4, 6, 8)]
    assert left_out(pieces) == []
    pieces += [line("Exercises", 60, size=16, page=number) for number in (1, 3, 5, 7, 9)]
    assert len(left_out(pieces)) == 9
