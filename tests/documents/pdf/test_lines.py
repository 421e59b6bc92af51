"""Words joined to pieces of lines, and these to lines in reading order."""

import random
from collections import Counter
from collections.abc import Iterable
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from documents.pdf.lines import Line, Placed, page_lines
from documents.pdf.page import Box, Page, PageWord, Rule
from documents.pdf.reading import read
from documents.records import Table
from tests.helpers.pdf_lines import word, words


def lines(given_words: list[PageWord], rules: tuple[Rule, ...] = (), placed: Iterable[Placed] = ()) -> list[Line]:
    """Lines, and a table as a line of its text."""
    items = read(page_lines(Page(1, 600, 800, tuple(given_words), rules)), [*placed])
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
