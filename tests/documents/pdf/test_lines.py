"""Words joined to pieces of lines, and these to lines in reading order."""

import random
from collections import Counter
from collections.abc import Iterable
from unicodedata import normalize

from hypothesis import example, given
from hypothesis import strategies as st

from documents.pdf.lines import Line, Placed, page_lines
from documents.pdf.page import Box, Page, PageWord, Rule
from documents.pdf.reading import read
from documents.records import Table
from tests.helpers.pdf_lines import word, words


def page(given_words: list[PageWord], rules: tuple[Rule, ...] = ()) -> Page:
    return Page(1, 600, 800, tuple(given_words), rules)


def lines(given_words: list[PageWord], rules: tuple[Rule, ...] = ()) -> list[Line]:
    return [item for item in read(page_lines(page(given_words, rules))) if isinstance(item, Line)]


def texts(given_words: list[PageWord], rules: tuple[Rule, ...] = ()) -> list[str]:
    return [item.text for item in lines(given_words, rules)]


def test_words_on_one_baseline_are_a_line() -> None:
    (line,) = lines(words("the pump moves water", 50, 100))
    assert line.text == "the pump moves water"
    assert line.box == Box(50, 92, 150, 102)
    assert (line.baseline, line.size, line.page, line.pieces) == (100, 10, 1, 1)


def test_the_order_of_words_in_the_file_does_not_count() -> None:
    given_words = words("1 Introduction to pumps", 50, 80, 14) + words("The pump is small.", 50, 100)
    given_words += words("It is loud.", 50, 112)
    expected = lines(given_words)
    for seed in range(5):
        assert lines(random.Random(seed).sample(given_words, len(given_words))) == expected


def test_a_number_and_its_title_are_one_line_with_two_pieces() -> None:
    (line,) = lines([*words("2.1", 50, 100), *words("Power supply", 90, 100)])
    assert (line.text, line.pieces) == ("2.1 Power supply", 2)


def test_subscripts_and_superscripts_stay_in_their_line() -> None:
    given_words = [word("x", 50, 100), word("2", 55, 96, 6), word("+", 62, 100), word("y", 72, 100)]
    given_words += [word("i", 77, 102, 6), *words("below", 50, 112)]
    assert texts(given_words) == ["x\u00b2 + yi", "below"]


def test_an_underscore_drawn_as_a_rule_is_read() -> None:
    given_words = [word("asn1", 50, 100), word("node", 74, 100), *words("x", 50, 112)]
    assert texts(given_words, (Rule(Box(70.3, 101, 73.7, 101.4)),)) == ["asn1_node", "x"]
    assert texts(given_words, (Rule(Box(70.3, 108, 73.7, 108.4)),)) == ["asn1 node", "x"]  # far below


def test_style_is_that_of_most_characters() -> None:
    (line,) = lines([word("Note:", 50, 100, bold=True), *words("the motor gets warm", 80, 100)])
    assert not line.bold
    (line,) = lines([*words("Wiring of the motor", 50, 100, 12, bold=True), word("=", 170, 100, 12, font="Symbol")])
    assert (line.bold, line.size) == (True, 12)


def test_blanks_of_code_stay() -> None:
    (line,) = lines([*words("int a;", 50, 100, font="Courier"), *words("// x", 110, 100, font="Courier")])
    assert (line.text, line.monospaced) == ("int a;      // x", True)


def test_a_table_stands_where_it_is_on_the_page() -> None:
    table = Placed(Table((("a",),)), Box(50, 105, 300, 150), 1)
    given_words = [*words("above", 50, 100), *words("below", 50, 170)]
    found = read(page_lines(page(given_words)), [table])
    assert [item.text if isinstance(item, Line) else item for item in found] == ["above", table, "below"]


def test_turned_text_comes_last_in_the_order_of_the_file() -> None:
    turned = [word("axis", 300, 90, upright=False), word("label", 300, 60, upright=False)]
    assert texts([*turned, *words("text", 50, 100)]) == ["text", "axis label"]


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
