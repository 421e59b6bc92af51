"""Headings, contents, paragraphs, lists, code and titles of the lines in `structures.yaml`.

Running headers, footers and page numbers of the pages in `running_headers.yaml`.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from documents.left_out import LeftOut
from documents.markdown_writing import to_markdown
from documents.pdf.blocks import blocks
from documents.pdf.contents import ContentsEntry, key, table_of_contents
from documents.pdf.footnotes import footnotes
from documents.pdf.lines import Line, Placed
from documents.pdf.page import Box
from documents.pdf.running_headers import running
from documents.pdf.spacing import Body
from documents.pdf.structure import structure
from documents.records import Document, Heading, Image, Paragraph, Table

PROSE = "The pump moves the water through the housing while the motor"


def line(text: str, baseline: float, left: float = 50.0, size: float = 10.0, **given: Any) -> Line:
    """A line; its column runs from 50 to 350 unless other edges are given."""
    box = Box(left, baseline - 0.8 * size, left + 0.5 * size * len(text), baseline + 0.2 * size)
    values: dict[str, Any] = {"page": 1, "font": "Times", "cell": 0.5 * size} | given
    return Line(
        text, box, left=values.pop("column_left", 50.0), right=values.pop("column_right", 350.0), size=size, **values
    )


def laid_out(script: str) -> list[Line]:
    """Lines of pages from a script.

    Its rows, each below the one before::

        page                  a new page
        text 3 8 x60          lines of running text: how many, style and place
        14 b | Housing        a line of text, 12 points below the one before, or as far as `+18` says, or at `y100`
        h 14 b | Housing      a heading: 24 points below the text, and 18 above what follows
        # 14 b | Housing      the same with four lines of text below it

    Style and place: a size, b(old), i(talic), m(onospaced), c(olored), `x60` from the left, `p3` pieces, `l9`
    characters of a bold lead, `>` in a second column. The text `~` is a full line.
    """
    found: list[Line] = []
    baseline, page = 60.0, 1
    for row in filter(str.strip, script.splitlines()):
        style, bar, text = row.partition("|")
        kind, *given = [*style.split(), ""]
        if kind not in ("page", "text", "h", "#"):
            kind, given = "", style.split()
        if kind == "page":
            baseline, page = 60.0, page + 1
            continue
        count = int(given.pop(0)) if kind == "text" else 1
        options: dict[str, Any] = {"page": page}
        above = 24.0 if kind in ("h", "#") else 12.0
        for one in filter(None, given):
            match one[0], one[1:]:
                case "+", points:
                    above = float(points)
                case "y", points:
                    baseline, above = float(points), 0.0
                case "x", points:
                    options["left"] = float(points)
                case "p", pieces:
                    options["pieces"] = int(pieces)
                case "l", lead:
                    options["lead"] = int(lead)
                case "c", _:
                    options["color"] = (0, 0, 90)
                case ">", _:
                    options |= {"left": 400.0, "column_left": 400.0, "column_right": 700.0}
                case "b" | "i" | "m" as name, _:
                    options[{"b": "bold", "i": "italic", "m": "monospaced"}[name]] = True
                    options |= {"font": "Courier"} if name == "m" else {}
                case _:
                    options["size"] = float(one)
        text = PROSE if not bar or text == " ~" else text.strip(" ")
        found += [line(text, baseline + above + 12 * at, **options) for at in range(count)]
        baseline = found[-1].baseline + (6 if kind in ("h", "#") else 0)
        if kind == "#":
            found += [line(PROSE, baseline + 12 + 12 * at, page=page) for at in range(4)]
            baseline = found[-1].baseline
    return found


BEFORE = "h 24 | Manual\ntext 20\n| It ends.\npage\n"
CASES = yaml.safe_load(Path(__file__).with_name("structures.yaml").read_text(encoding="utf-8"))
RUNNING = yaml.safe_load(Path(__file__).with_name("running_headers.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["is"])
def test_lines_become_a_document(case: dict[str, Any]) -> None:
    items = laid_out(case["lines"] if "title" in case else BEFORE + case["lines"])
    entries = [ContentsEntry(*row) for row in case.get("entries", ())]
    left_out = LeftOut()
    title, found_blocks = structure(items, entries, case.get("metadata", ""), "folder/p300.pdf", left_out)
    later = [replace(block, page=None) for block in found_blocks if block.page != 1 or "title" in case]
    found = {
        "title": title,
        "contents": [[entry.title, entry.level, entry.label] for entry in table_of_contents(items)[0]],
        "left_out": list(left_out.lines),
        "headings": "".join(f"{'#' * b.level} {b.text}\n" for b in later if isinstance(b, Heading)),
        "read": to_markdown(Document("p300.pdf", "", tuple(later))).partition("\n\n")[2],
    }
    expected = {name: case[name] for name in found if name in case}
    assert {name: found[name] for name in expected} == expected


NO_HEADINGS = (
    "b | Figure 3: Wiring of the motor", "b | Table 2. Ratings", "b | Picture 1: What is inside", "b | Definition 2.1",
    "b | Theorem 1 (Pumps need oil)", "b | Warning", "b | \u2022 the valve", "12 | a = b + c * 4 / 7 - 2",
    "b | This is a whole sentence in bold.", "b m | --help", "| 3. Tighten the four screws", "14 b | 42",
    "b p3 | Name Type Unit", "b | Keywords: pump, motor",
)  # fmt: skip
NO_TITLES = (
    "", "untitled", "Untitled-3", "manual.dvi", "Microsoft Word - x.doc", "C:\\texts\\manual", "x", "Title"
)  # fmt: skip


@pytest.mark.parametrize(
    ("script", "metadata"),
    [*((f"{BEFORE}text 4\nh {row}\ntext 4", "") for row in NO_HEADINGS),
     *(("# 20 | 1 Introduction", metadata) for metadata in NO_TITLES)],
)  # fmt: skip
def test_what_is_no_heading_and_no_title(script: str, metadata: str) -> None:
    title, found = structure(laid_out(script), [], metadata, "folder/p300.pdf", LeftOut())
    expected = ("Manual", 0) if script.startswith(BEFORE) else ("p300", 1)
    assert (title, sum(isinstance(block, Heading) for block in found)) == expected


def test_footnotes_figures_and_tables_stand_behind_the_paragraph_that_goes_on_after_them() -> None:
    image, table = Image(b"png", ".png", page=2), Table((("a",),), page=2)
    before = laid_out("text 20\n| ~\n8 y700 | 1 Of the year before.\n8 +10 | 2 Of this year.")
    items = [
        *before, Placed(image, Box(50, 50, 350, 90), 2), *laid_out("page\ny110 | turns."),
        Placed(table, Box(50, 120, 300, 200), 2), *laid_out("page\ny220 | More."),
    ]  # fmt: skip
    _, (first, *notes) = structure(items, [], "", "p300.pdf", LeftOut())
    assert isinstance(first, Paragraph)
    assert first.text.endswith("the motor turns.")
    assert notes == [
        Paragraph("1 Of the year before.", 1), Paragraph("2 Of this year.", 1), image, table, Paragraph("More.", 2),
    ]  # fmt: skip


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
    def letters(parts: Iterable[str]) -> list[str]:
        return sorted(char for part in parts for char in part if char.isalnum())

    found = blocks(items, [], footnotes(items, Body(font="Times")), set(), Body(font="Times"), LeftOut())
    assert letters(block.text for block in found if isinstance(block, Paragraph)) == letters(one.text for one in items)


def test_keys_compare_letters_and_digits_alone() -> None:
    assert key("1.2  Self-Test (\ufb01rst)") == key("12 selftest FIRST")


def running_on(count: int, each: str, some: dict[int, str]) -> list[str]:
    """What is found to run on pages of text with lines on each of them (#: its number) or on some."""
    found: list[Line] = []
    for number in range(1, max(count, *some, 0) + 1):
        text = f"{each.replace('#', str(number))}\ny100 | Text {chr(97 + number % 26)} begins\ntext 40\n" * (
            number <= count
        )
        found += [replace(line, page=number) for line in laid_out(text + some.get(number, ""))]
    return [found[at].text for at in sorted(running(found, {line.page: 800.0 for line in found}))]


@pytest.mark.parametrize("case", RUNNING, ids=lambda case: case["is"])
def test_what_runs_is_found(case: dict[str, Any]) -> None:
    found = running_on(case["pages"], case.get("each", ""), case.get("some", {}))
    assert (found if isinstance(case["found"], list) else len(found)) == case["found"]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(
    "first",
    [
        "y88 | Question #: Which valve of pump # must be closed?",  # the next line's distance
        "y88 | In 199# the factory moved to the harbour",
        "y88 | 199# was the year of the new factory",
        "y84 | Switch off the pump before you open it.",  # a paragraph's distance
        "y60 | Report number # says that the pump of unit # failed.",  # further away, but a sentence
    ],
)
def test_a_page_s_first_line_of_text_stays_whatever_its_numbers_count(count: int, first: str) -> None:
    assert running_on(count, first, {}) == []
