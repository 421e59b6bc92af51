"""The printed table of contents."""

from documents.pdf.contents import ContentsEntry, key, table_of_contents
from documents.pdf.lines import Line
from tests.helpers.pdf_lines import line, prose

DOTS = " . . . . . . . . . "


def entries(items: list[Line]) -> list[tuple[str, int, int | None]]:
    return [(entry.title, entry.level, entry.label) for entry in table_of_contents(items)[0]]


def contents(*rows: tuple[str, float]) -> list[Line]:
    return [line(text, 100 + 14 * at, left=left) for at, (text, left) in enumerate(rows)]


def test_entries_with_leaders_levels_by_number_and_place() -> None:
    items = [
        line("Table of Contents", 60, size=16),
        *contents(
            ("Preface" + DOTS + "iv", 50), ("1 Pumps" + DOTS + "1", 50), ("1.1 Housing" + DOTS + "2", 62),
            ("1.1.1 Seal" + DOTS + "2", 74), ("2 Motors" + DOTS + "5", 50), ("Index" + DOTS + "9", 50),
        ),
        *prose(300, 3),
    ]  # fmt: skip
    assert entries(items) == [
        ("Preface", 1, None), ("1 Pumps", 1, 1), ("1.1 Housing", 2, 2), ("1.1.1 Seal", 3, 2), ("2 Motors", 1, 5),
        ("Index", 1, 9),
    ]  # fmt: skip
    assert table_of_contents(items)[1] == set(range(7))


def test_without_numbers_the_place_gives_levels() -> None:
    items = contents(
        ("Pumps" + DOTS + "1", 50), ("Housing" + DOTS + "2", 62), ("Seal" + DOTS + "3", 74), ("Motors" + DOTS + "5", 50)
    )
    assert [entry[:2] for entry in entries(items)] == [("Pumps", 1), ("Housing", 2), ("Seal", 3), ("Motors", 1)]


def test_an_entry_of_two_lines_is_one() -> None:
    items = contents(
        ("1 Pumps" + DOTS + "1", 50),
        ("2 Motors of the kinds that", 50),
        ("are in use" + DOTS + "5", 60),
        ("3 Oil" + DOTS + "8", 50),
    )
    assert entries(items) == [("1 Pumps", 1, 1), ("2 Motors of the kinds that are in use", 1, 5), ("3 Oil", 1, 8)]


def test_an_index_is_no_table_of_contents() -> None:
    """Its page numbers go up and down."""
    items = contents(
        *[
            (f"{word}{DOTS}{page}", 50)
            for word, page in (("air", 9), ("bolt", 2), ("cable", 7), ("dial", 1), ("edge", 5))
        ]
    )
    assert table_of_contents(items) == ([], set())


def test_lists_of_figures_are_left_out_and_name_no_headings() -> None:
    items = [
        line("Contents", 60),
        *contents(("1 Pumps" + DOTS + "1", 50), ("2 Motors" + DOTS + "5", 50), ("3 Oil" + DOTS + "8", 50)),
        line("List of Figures", 200),
        line("1 Wiring" + DOTS + "3", 220),
        line("Text begins.", 300),
    ]
    found, taken = table_of_contents(items)
    assert [entry.title for entry in found] == ["1 Pumps", "2 Motors", "3 Oil"]
    assert taken == set(range(6))


def test_a_section_named_tables_stays() -> None:
    items = [line("Tables", 60, size=14), *prose(80, 3)]
    assert table_of_contents(items) == ([], set())


def test_entries_without_page_numbers_are_found_by_the_headings_they_repeat() -> None:
    items = [
        line("CONTENTS", 60, bold=True),
        *contents(("1 Pumps", 50), ("1.1 Housing", 62), ("2 Motors", 50)),
        line("This manual has three sections.", 200),
        line("1 PUMPS", 300, bold=True),
        line("1.1 Housing", 330, bold=True),
        line("2 MOTORS", 400, bold=True),
    ]
    assert entries(items) == [("1 Pumps", 1, None), ("1.1 Housing", 2, None), ("2 Motors", 1, None)]
    assert table_of_contents(items)[1] == {0, 1, 2, 3}


def test_keys_compare_letters_and_digits_alone() -> None:
    assert key("1.2  Self-Test (\ufb01rst)") == key("12 selftest FIRST")
    assert ContentsEntry("x", 1) == ContentsEntry("x", 1, None, None)
