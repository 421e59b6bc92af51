"""Words joined to pieces of lines, initials to their lines, and pieces in reading order: columns and groups."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reportlab.pdfbase.pdfmetrics import stringWidth

from documents.pdf.clusters import CELL, groups
from documents.pdf.columns import ColumnPiece, reading_order
from documents.pdf.initials import join_initials
from documents.pdf.lines import Line, Placed, page_lines
from documents.pdf.page import Box, PageWord, Rule
from documents.pdf.reading import read
from documents.reading.pdf_reading import parse_pdf
from documents.records import Paragraph, Table
from tests.helpers.pdf_pages import pdf, text_page


def word(text: str, left: float, baseline: float, size: float = 10.0, font: str = "Times", **more: Any) -> PageWord:
    """A word whose characters are half as wide as high."""
    box = Box(left, baseline - 0.8 * size, left + 0.5 * size * len(text), baseline + 0.2 * size)
    return PageWord(text, box, size, font, more.pop("bold", False), False, **more)


def words(text: str, left: float, baseline: float, size: float = 10.0, **style: Any) -> list[PageWord]:
    """Words of a line, a blank between them."""
    found = []
    for part in text.split(" "):
        if part:
            found.append(word(part, left, baseline, size, **style))
        left += 0.5 * size * (len(part) + 1)
    return found


def lines(given_words: list[PageWord], rules: tuple[Rule, ...] = (), placed: Iterable[Placed] = ()) -> list[Line]:
    """Lines, and a table as a line of its text."""
    items = read(page_lines(given_words, 1, rules), [*placed])
    return [item if isinstance(item, Line) else Line("TABLE", item.box, 1, 0, 0) for item in items]


def texts(given_words: list[PageWord], rules: tuple[Rule, ...] = (), placed: Iterable[Placed] = ()) -> list[str]:
    return [line.text for line in lines(given_words, rules, placed)]


BELOW = words("below", 50, 112)
RAISED = [word("x", 50, 100), word("2", 55, 96, 6), word("+", 62, 100), word("y", 72, 100), word("i", 77, 102, 6)]
TURNED = [word("axis", 300, 90, upright=False), word("label", 300, 60, upright=False)]
NODE = [word("asn1", 50, 100), word("node", 74, 100), *BELOW]


@pytest.mark.parametrize(
    ("given_words", "expected", "more"),
    [
        ([*RAISED, *BELOW], ["x\u00b2 + yi", "below"], {}),
        # an underscore drawn as a rule, and one that is far below
        (NODE, ["asn1_node", "below"], {"rules": (Rule(Box(70.3, 101, 73.7, 101.4)),)}),
        (NODE, ["asn1 node", "below"], {"rules": (Rule(Box(70.3, 108, 73.7, 108.4)),)}),
        ([*words("above", 50, 100), *words("below", 50, 170)], ["above", "TABLE", "below"],
         {"placed": [Placed(Table((("a",),)), Box(50, 105, 300, 150), 1)]}),
        ([*TURNED, *BELOW], ["below", "axis label"], {}),  # last, in the order of the file
    ],
)  # fmt: skip
def test_the_lines_of_a_page(given_words: list[PageWord], expected: list[str], more: dict) -> None:
    assert texts(given_words, **more) == expected


@pytest.mark.parametrize(
    ("given_words", "expected"),
    [
        (words("the pump moves water", 50, 100), {"text": "the pump moves water", "box": Box(50, 92, 150, 102),
            "baseline": 100, "size": 10, "page": 1, "pieces": 1}),
        ([*words("2.1", 50, 100), *words("Power supply", 90, 100)], {"text": "2.1 Power supply", "pieces": 2}),
        # style is that of most characters
        ([word("Note:", 50, 100, bold=True), *words("the motor gets warm", 80, 100)], {"bold": False}),
        ([*words("Wiring of the motor", 50, 100, 12, bold=True), word("=", 170, 100, 12, font="Symbol")],
         {"bold": True, "size": 12}),
        # blanks of code stay
        ([*words("int a;", 50, 100, font="Courier"), *words("// x", 110, 100, font="Courier")],
         {"text": "int a;      // x", "monospaced": True}),
    ],
)  # fmt: skip
def test_words_on_one_baseline_are_a_line(given_words: list[PageWord], expected: dict[str, object]) -> None:
    (line,) = lines(given_words)
    assert {name: getattr(line, name) for name in expected} == expected


def test_the_order_of_words_in_the_file_does_not_count() -> None:
    given_words = words("1 Introduction to pumps", 50, 80, 14) + words("The pump is small.", 50, 100) + BELOW
    for seed in range(5):
        assert lines(random.Random(seed).sample(given_words, len(given_words))) == lines(given_words)


any_word = st.builds(
    word,
    st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=8),
    st.floats(0, 600),
    st.floats(0, 800),
    st.sampled_from([6.0, 10.0, 24.0]),
    bold=st.booleans(),
    upright=st.sampled_from([True, True, True, False]),
    font=st.sampled_from(["Times", "Courier"]),
)


def plain(given_texts: Iterable[str]) -> Counter[str]:
    """The characters of texts without blanks; raised ones, which are written as superscripts, as they are drawn."""
    letters = "".join(given_texts).replace(" ", "").translate(dict.fromkeys(map(ord, "-\u2013"), "\u2212"))
    return Counter("".join(normalize("NFKC", letter) for letter in letters))


@given(st.lists(any_word, max_size=40))
@example([word("0", 0, 0, 10), word("0", 0, -4.8, 6), word("a/b", 300, 0, 10), word("(c-d)", 312, -4.8, 6)])
def test_no_character_is_lost(given_words: list[PageWord]) -> None:
    drawn = plain(item.text for item in given_words)
    read_back = plain(texts(given_words))
    assert not drawn - read_back
    assert set(read_back - drawn) <= set("^()")  # the marks of raised text that Unicode cannot write


LINES = ("time there was a king who lived", "and he had three daughters, who", "were known in all the land for")
MORE = "The king went out to the wood each day and so on"


@pytest.mark.parametrize("before", [True, False])  # whether it is drawn before or after the text
@pytest.mark.parametrize(
    ("initial", "rest", "lines", "size", "gap", "expected"),
    [
        ("O", "nce upon a", 2, 30, 5, "Once upon a"),
        ("O", "nce upon a", 3, 50, 5, "Once upon a"),
        ("O", "NCE UPON a", 2, 24, 4, "ONCE UPON a"),
        ("\u201cO", "nce upon a", 2, 30, 2, "\u201cOnce upon a"),
        ("A", "long", 2, 30, 9, "A long"),  # the first line begins further right
        ("A", "king", 2, 30, 5, "A king"),  # a word of the page
        ("A", "t this", 2, 30, 5, "At this"),
        ("O", "nce upon a", 1, 30, 2, "Once upon a"),  # on its line
        ("W", "hen upon a", 1, 24, 5, "When upon a"),
        ("A", "king upon a", 1, 30, 5, "A king upon a"),
        ("O", "nce upon a", 1, 30, 12, "O nce upon a"),  # too far
    ],
)
def test_an_initial_joins_its_line(
    initial: str, rest: str, lines: int, size: float, gap: float, expected: str, before: bool
) -> None:
    """The initial stands on the last of its lines, which are 14 points apart."""
    letter = [(40, 100 + 14 * (lines - 1), initial, "Times-Roman", size)]
    left = 40 + stringWidth(initial, "Times-Roman", size)
    indents = [left + gap, *[left + min(gap, 5)] * (lines - 1), *[40.0] * 5]
    texts = (f"{rest} {LINES[0]}", *LINES[1:], MORE, MORE, MORE)
    rows = [
        (left, 100 + 14 * at, text, "Times-Roman", 11)
        for at, (left, text) in enumerate(zip(indents, texts, strict=False))
    ]
    found = parse_pdf(pdf(text_page([*letter, *rows] if before else [*rows, *letter])), "x.pdf").blocks[0]
    assert isinstance(found, Paragraph)
    assert found.text.startswith(" ".join([expected, *LINES, MORE]))  # it ends neither the paragraph nor its line


def test_a_large_letter_with_raised_text_is_no_initial() -> None:
    given_words = [word("X", 50, 100, 24), word("max", 64, 90), word("is", 84, 100, 12), word("large", 100, 100, 12)]
    assert join_initials(given_words) == given_words


LEFT, RIGHT = (50.0, 290.0), (310.0, 550.0)
BY_ROW = [(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)]


def piece(left: float, top: float, right: float, bottom: float, running: bool = True) -> ColumnPiece:
    return ColumnPiece(Box(left, top, right, bottom), running)


def rows(left: float, right: float, top: float, count: int, running: bool = True) -> list[ColumnPiece]:
    return [piece(left, top + 12 * at, right, top + 12 * at + 10, running) for at in range(count)]


def sides(top: float, count: int, running: bool = True) -> list[ColumnPiece]:
    return [*rows(*LEFT, top, count, running), *rows(*RIGHT, top, count, running)]


TITLE = piece(150, 50, 450, 70)
# High boxes say nothing about how high a line is, and so about how narrow a column may be.
HIGH = [piece(310, 100, 440, 110), piece(310, 114, 520, 300), piece(310, 320, 440, 330), piece(310, 334, 520, 500)]
CELLS = [[piece(at, 100 + 12 * n, at + (30 if n else 240), 110 + 12 * n) for n in range(6)] for at in (50, 310)]
CONTENTS = [piece(50, 100 + 12 * at, 120 + 17 * (at % 11), 110 + 12 * at) for at in range(30)]


@pytest.mark.parametrize(
    ("pieces", "regions"),
    [
        (sides(100, 10), [(*range(10),), (*range(10, 20),)]),
        ([*rows(50, 200, 100, 8), *rows(220, 370, 100, 8), *rows(390, 540, 100, 8)], []),
        ([*rows(*LEFT, 100, 45), *HIGH, piece(310, 510, 520, 640)], []),
        ([TITLE, *sides(100, 10), piece(100, 230, 500, 400), *sides(410, 6)], []),
        ([*rows(50, 110, 100, 6), *rows(150, 550, 100, 6)], BY_ROW),
        ([*CELLS[0], *CELLS[1]], BY_ROW),
        (sides(100, 6, running=False), BY_ROW),
        ([*CONTENTS, *rows(*RIGHT, 100, 30)], []),
    ],
    ids=["two columns", "three columns", "tables and images beside text", "what crosses the gutter divides them",
         "labels beside text", "values beside names", "comments beside code", "contents beside running text"],
)  # fmt: skip
def test_pieces_are_read_region_by_region(pieces: list[ColumnPiece], regions: list[tuple[int, ...]]) -> None:
    """In the order in which they are given, if no regions are; whatever their order in the file is."""
    found = reading_order(pieces)
    order = [at for region in found for at in region.pieces]
    assert order == [at for region in regions for at in region] or list(range(len(pieces)))
    assert not regions or [region.pieces for region in found] == regions
    for seed in range(3):
        shuffled = random.Random(seed).sample(pieces, len(pieces))
        again = [shuffled[at] for region in reading_order(shuffled) for at in region.pieces]
        assert again == [pieces[at] for at in order]


def test_a_region_has_its_edges() -> None:
    assert [(region.left, region.right) for region in reading_order(sides(100, 10))] == [LEFT, RIGHT]


EDGES = st.tuples(st.floats(0, 600), st.floats(0, 800), st.floats(0.1, 500), st.floats(0.1, 60))


@given(st.lists(EDGES.map(lambda box: piece(box[0], box[1], box[0] + box[2], box[1] + box[3])), max_size=60))
def test_every_piece_is_in_one_region(pieces: list[ColumnPiece]) -> None:
    assert sorted(at for region in reading_order(pieces) for at in region.pieces) == list(range(len(pieces)))


SPANS = st.tuples(st.integers(-80, 240), st.integers(0, 100)).map(lambda span: (span[0] / 4, span[1] / 4))  # exact
BOXES = st.lists(st.builds(lambda x, y: Box(x[0], y[0], x[0] + x[1], y[0] + y[1]), SPANS, SPANS), max_size=12)


def touching(boxes: list[Box], reach: float) -> list[set[int]]:
    """Groups of boxes that cover cells with a common side or a common cell, merged until none touch."""

    def cells(box: Box, axis: int) -> range:
        """That a box covers with half its reach around it; the first box begins at 0."""
        start, end = (box[at] - min(one[axis] for one in boxes) for at in (axis, axis + 2))
        return range(math.floor(start / CELL), math.floor((end + reach) / CELL) + 1)

    merged: list[tuple[set[int], set[tuple[int, int]]]] = []
    for index, box in enumerate(boxes):
        members, covered = {index}, {*product(cells(box, 0), cells(box, 1))}
        near = covered | {(x + dx, y + dy) for x, y in covered for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))}
        for group in [group for group in merged if group[1] & near]:
            merged.remove(group)
            members, covered = members | group[0], covered | group[1]
        merged.append((members, covered))
    return sorted((members for members, _ in merged), key=min)


@given(BOXES, st.sampled_from([0.0, 3.0, 8.5]))
def test_groups_are_those_of_all_pairs(boxes: list[Box], reach: float) -> None:
    found = groups(boxes, reach)
    assert all(group == sorted(group) for group in found)
    assert [set(group) for group in found] == (touching(boxes, reach) if boxes else [])
