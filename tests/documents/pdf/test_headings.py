"""Headings by outline, table of contents, numbers and styles."""

from collections.abc import Sequence
from typing import Any

import pytest

from documents.pdf.contents import ContentsEntry
from documents.pdf.front_matter import front_matter
from documents.pdf.heading_candidates import groups
from documents.pdf.heading_entries import known
from documents.pdf.headings import headings
from documents.pdf.lines import Line
from documents.pdf.spacing import body_of
from documents.pdf.title import Title, find_title, plausible
from tests.helpers.pdf_lines import LEADING, line, prose


class Pages:
    """Lines of a document, written from the top: text between headings."""

    def __init__(self) -> None:
        self.items: list[Line] = []
        self._baseline, self._page = 60.0, 1

    def text(self, count: int = 4, **given: Any) -> "Pages":
        self.items += prose(self._baseline + LEADING, count, page=self._page, **given)
        self._baseline = self.items[-1].baseline
        return self

    def heading(self, text: str, size: float = 10.0, above: float = 24.0, **given: Any) -> "Pages":
        self._baseline += above
        self.items.append(line(text, self._baseline, size=size, page=self._page, **given))
        self._baseline += 6
        return self

    def new_page(self) -> "Pages":
        self._baseline, self._page = 60.0, self._page + 1
        return self

    def found(self, entries: Sequence[ContentsEntry] = ()) -> list[tuple[int, str]]:
        body = body_of(self.items)
        grouped = groups(self.items, body)
        named = known(entries, grouped, body)
        return [(found.level, found.text) for found in headings(self.items, grouped, named, body, set())]


@pytest.mark.parametrize(
    ("rows", "entries"),
    [
        ([(1, "1 Pumps", 12), (2, "1.1 Housing", 12), (3, "1.1.1 Seal", 12), (2, "1.2 Valve", 12)], ()),
        ([(1, "Pumps", 18), (2, "Housing", 14), (3, "Seal", 11), (2, "Valve", 14), (1, "Oil", 18), (2, "Rest", 11)],
         ()),
        ([(1, "1 Pumps", 16), (2, "1.1 Housing", 12), (1, "2 Motors", 16), (1, "Appendix A Oil", 16),
          (2, "A.1 Kinds", 12)], ()),
        ([(1, "Part I Basics", 20), (2, "Chapter 1 Pumps", 16), (3, "1.1 Housing", 12), (1, "Part II Practice", 20),
          (2, "Chapter 2 Motors", 16)], ()),
        ([(1, "1 Pumps", 14), (2, "1.1 Housing", 12), (1, "2 Motors", 14), (1, "References", 14)], ()),
        ([(1, "Abstract", 15), (1, "Pumps", 14), (1, "Motors", 14), (1, "Oil", 14)], ()),
        ([(1, "Pumps", 14), (2, "Housing", 14), (1, "Motors", 14)],
         (ContentsEntry("Pumps", 1, 1), ContentsEntry("Housing", 2, 1), ContentsEntry("Motors", 1, 1))),
        ([(1, "1 Pumps", 16), (2, "Housing", 12), (1, "2 Motors", 16), (2, "Rotor", 12)],
         (ContentsEntry("1 Pumps", 1), ContentsEntry("2 Motors", 1))),
    ],
    ids=["numbers", "styles", "appendix", "parts", "no number", "abstract", "entries", "below the contents"],
)  # fmt: skip
def test_levels_of_bold_headings(rows: list[tuple[int, str, float]], entries: tuple[ContentsEntry, ...]) -> None:
    """Each heading with its level and size, and the entries of a table of contents."""
    pages = Pages()
    for _, text, size in rows:
        pages.heading(text, size, bold=True).text()
    assert pages.found(entries) == [(level, text) for level, text, _ in rows]


def test_what_looks_exactly_like_known_numbered_headings_is_one_whatever_its_words() -> None:
    """Types of a template, in small letters, and "Note", which is else the head of a box of text."""
    texts, look = ["1 Types", "string", "Note", "2 Values"], {"bold": True, "color": (0, 0, 90)}
    entries = (ContentsEntry("1 Types", 1), ContentsEntry("2 Values", 1))
    pages, other = Pages(), Pages()
    for text in texts:
        pages.heading(text, **look).text()
        other.heading(text, **(look if text[0].isdecimal() else look | {"color": (0, 0, 0)})).text()
    assert [text for _, text in pages.found(entries)] == texts
    assert [text for _, text in other.found(entries)] == ["1 Types", "2 Values"]


def test_letters_that_begin_again_are_nested() -> None:
    """I. A. 1. as American journals count."""
    pages = Pages()
    for text in ("I. THEORY", "A. Pumps", "1. Housing", "2. Seal", "B. Motors", "II. PRACTICE", "A. Oil", "1. Kinds"):
        pages.heading(text, 9, bold=text[:1] != "1" and text[:1] != "2", italic=text[0] in "12").text()
    assert [level for level, _ in pages.found()] == [1, 2, 3, 3, 2, 1, 2, 3]


def test_bold_text_of_the_body_s_size_is_a_heading_if_it_stands_apart() -> None:
    pages = Pages()
    for text in ("Housing", "Valve"):
        pages.heading(text, bold=True).text()
    pages.heading("Not apart", above=6, bold=True)
    assert pages.found() == [(1, "Housing"), (1, "Valve")]


def test_a_chapter_s_number_above_its_title_belongs_to_it() -> None:
    pages = Pages().heading("Chapter 4", 18, bold=True).heading("Using pumps", 22, above=40, bold=True).text()
    assert pages.found() == [(1, "Chapter 4 Using pumps")]


def test_a_chapter_in_words_has_the_text_of_its_entry() -> None:
    pages = (
        Pages()
        .heading("CHAPTER", 10, bold=True)
        .heading("ONE", 14, bold=True)
        .heading("USING PUMPS", 14, above=40, bold=True)
        .text()
    )
    assert pages.found([ContentsEntry("1 Using pumps", 1, label=1)]) == [(1, "1 Using pumps")]


def test_lines_of_a_heading_are_joined() -> None:
    pages = Pages().heading("How the housing of the pump is to be mount-", 14, bold=True)
    pages.heading("ed on the motor", 14, above=10, bold=True).text()
    assert pages.found() == [(1, "How the housing of the pump is to be mounted on the motor")]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Figure 3: Wiring of the motor", {"bold": True}),
        ("Table 2. Ratings", {"bold": True}),
        ("Picture 1: What is inside", {"bold": True}),
        ("Theorem 1 (Pumps need oil)", {"bold": True}),
        ("Definition 2.1", {"bold": True}),
        ("Warning", {"bold": True}),
        ("\u2022 the valve", {"bold": True}),
        ("a = b + c * 4 / 7 - 2", {"size": 12}),
        ("This is a whole sentence in bold.", {"bold": True}),
        ("--help", {"bold": True, "monospaced": True}),
        ("3. Tighten the four screws", {}),
        ("42", {"bold": True, "size": 14}),
        ("Name Type Unit", {"bold": True, "pieces": 3}),
        ("Keywords: pump, motor", {"bold": True}),
    ],
)
def test_what_is_no_heading(text: str, given: dict[str, Any]) -> None:
    assert Pages().text().heading(text, **given).text().found() == []


@pytest.mark.parametrize(
    ("texts", "above", "italic_prose", "found"),
    [
        (("Housing", "Valve", "Kinds of oil and of grease"), 24.0, 0, True),
        (("Housing", "Valve"), 24.0, 0, False),  # two may be anything
        (("Housing", "Valve", "Oil"), 6.0, 0, False),
        (("Housing.", "valve", "(Oil)"), 24.0, 0, False),
        (("Housing", "Valve", "Oil"), 24.0, 3, False),  # italics are for quotations
    ],
)
def test_italics_of_the_body_s_size_are_headings_where_they_stand_apart_again_and_again(
    texts: tuple[str, ...], above: float, italic_prose: int, found: bool
) -> None:
    pages = Pages().text(20)
    for text in texts:
        pages.heading(text, above=above, italic=True)
        pages.items += prose(pages.items[-1].baseline + LEADING, 3)  # right below, as the lines of a paragraph
        pages.heading("x", above=3 * LEADING).items.pop()
    for _ in range(italic_prose):
        pages.text(5, italic=True).heading("x", above=3 * LEADING).items.pop()
    assert pages.found() == ([(1, text) for text in texts] if found else [])


def test_bold_terms_with_indented_descriptions_are_no_headings() -> None:
    pages = Pages().text()
    for text in ("Rotor", "Stator", "Housing"):
        pages.heading(text, bold=True).text(2, left=80)
    assert pages.found() == []


def test_a_style_that_mostly_runs_on_is_no_heading_s() -> None:
    pages = Pages().text(20)
    pages.heading("Mind this", bold=True).text()
    for _ in range(4):
        pages.heading("x", above=20).items.pop()
        pages.text(5, bold=True)
    assert pages.found() == []


def test_an_entry_makes_a_heading_of_what_does_not_look_like_one() -> None:
    pages = Pages().text().heading("3. Tighten the screws").text()
    assert pages.found([ContentsEntry("3 Tighten the screws", 2, page=1)]) == [(1, "3. Tighten the screws")]


def test_an_entry_is_looked_up_on_its_page() -> None:
    pages = (
        Pages()
        .heading("Options", 14, bold=True)
        .text()
        .new_page()
        .heading("Use", 14, bold=True)
        .text()
        .heading("Options", 11, bold=True)
        .text()
    )
    assert pages.found(
        [ContentsEntry("Options", 1, 1), ContentsEntry("Use", 1, 2), ContentsEntry("Options", 2, 2)]
    ) == [
        (1, "Options"),
        (1, "Use"),
        (2, "Options"),
    ]


def test_printed_page_numbers_are_not_those_of_the_file() -> None:
    pages = Pages().text().new_page().text().new_page().heading("Use", 11, bold=True).text().new_page()
    pages.heading("Oil", 11, bold=True).text().heading("Use", 11, bold=True)
    assert (2, "Use") in pages.found(
        [ContentsEntry("Use", 1, label=1), ContentsEntry("Oil", 1, label=2), ContentsEntry("Use", 2, label=2)]
    )


def title_of(pages: Pages, metadata: str = "", *entries: ContentsEntry) -> str:
    body = body_of(pages.items)
    return find_title(groups(pages.items, body), entries, metadata, body, "folder/p300.pdf").text


def test_the_title_is_what_is_largest_on_the_first_page() -> None:
    pages = (
        Pages()
        .heading("Example Ltd", 14)
        .heading("Pump P-300", 24, bold=True)
        .heading("Manual", 24, above=26, bold=True)
    )
    assert title_of(pages.new_page().text(20)) == "Pump P-300 Manual"


def test_metadata_decides_between_texts_of_the_first_page() -> None:
    pages = Pages().heading("EXAMPLE", 30).heading("Pump Manual", 20).new_page().text(20)
    assert title_of(pages) == "EXAMPLE"
    assert title_of(pages, "Pump manual") == "Pump Manual"
    assert title_of(pages, "Microsoft Word - p300.doc") == "EXAMPLE"


def test_a_heading_is_no_title() -> None:
    pages = Pages().heading("1 Introduction", 20).text(20)
    assert title_of(pages) == "p300"
    pages = Pages().heading("Introduction", 20).text(20)
    assert title_of(pages, "", ContentsEntry("Introduction", 1, 1)) == "p300"
    assert title_of(pages, "Pump Manual", ContentsEntry("Introduction", 1, 1)) == "Pump Manual"


@pytest.mark.parametrize(
    "title", ["", "untitled", "Untitled-3", "manual.dvi", "Microsoft Word - p300.doc", "C:\\texts\\p300", "x", "Title"]
)
def test_implausible_metadata(title: str) -> None:
    assert not plausible(title)


def test_authors_and_editions_are_no_headings_and_an_abstract_is_one() -> None:
    pages = (
        Pages()
        .heading("Pump P-300", 24)
        .heading("Jane Example", 14, bold=True)
        .heading("Second edition", 12, bold=True)
    )
    pages.text(6, size=8.0)  # addresses, smaller than the text
    pages.heading("Abstract", 12, bold=True).text(6).heading("1 Use", 14, bold=True).text()
    body = body_of(pages.items)
    grouped = groups(pages.items, body)
    front = front_matter(grouped, Title("Pump P-300", frozenset({0}), True), set(), None, body)
    assert [grouped[at].text for at in sorted(front)][:3] == ["Pump P-300", "Jane Example", "Second edition"]
    assert len(front) == 4
