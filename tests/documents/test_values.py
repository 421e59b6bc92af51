"""Small functions on texts: the rows of `values.yaml`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.words import terms_of
from documents.fidelity import fidelity, torn, words
from documents.left_out import LeftOut
from documents.pdf.fonts import base_name, is_bold, is_italic, is_monospaced
from documents.pdf.hyphenation import joined, vocabulary
from documents.pdf.numbering import number_of, roman
from documents.pdf.word_text import word_text
from documents.raised import lowered, note_mark, raised
from documents.reading.any_file import read_document
from documents.reading.html_reading import parse_html
from documents.reading.markdown_reading import parse_markdown
from documents.reading.text_encoding import decoded
from documents.reading.web_encodings import web_encoding
from documents.records import Document, Heading
from documents.segments.splitting import sentences, word_count

ROWS = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text(encoding="utf-8"))
WORDS = vocabulary([
    "a self-contained unit", "the information of the well known", "width and changing parts", "re-enter", "an island",
    "le mot et le reste", "the main machine", "the art",
])  # fmt: skip

LONG = f"<title>{'x' * 5000}</title><meta charset=windows-1251>"
ROWS["encoding of a page"].append([[LONG, ROWS["encoding of a page"][0][0][1]], "cp1251"])


def numbered(text: str) -> list[Any] | None:
    number = number_of(text)
    return number and [number.kind, list(number.values), text[number.length :]]


def of_page(head: str, text: str) -> str:
    """The encoding, of two, in which a page of Cyrillic letters reads."""
    data = head.encode() + text.encode("cp1251")
    ending = decoded(data, LeftOut(), is_html=True)[-18:]
    return next(encoding for encoding in ("cp1251", "cp1252") if data[-18:].decode(encoding) == ending)


def guessed(encoding: str, text: str) -> str:
    """What a report says."""
    document = read_document(f"{text}\n".encode(encoding), "a.txt")
    assert [getattr(block, "text", "") for block in document.blocks] == [text]
    (line,) = document.left_out
    return line.removeprefix("read as ").removesuffix(" by a guess: save it as UTF-8 if its letters are wrong")


def outline(document: Document) -> list[Any]:
    headings = [block for block in document.blocks if isinstance(block, Heading)]
    return [document.title, [[block.text, block.level] for block in headings]]


CALLS: dict[str, Callable[..., Any]] = {
    "style of a font": lambda name: [is_bold(name), is_italic(name), is_monospaced(name)],
    "base_name": base_name,
    "joined": lambda text, line: joined(text, line, WORDS),
    "number_of": numbered,
    "roman": roman,
    "raised": raised,
    "lowered": lowered,
    "note_mark": note_mark,
    "word_text": lambda text: word_text([(letter, 6.0 * at, 6.0 * at + 5) for at, letter in enumerate(text)]),
    "sentences": sentences,
    "word_count": word_count,
    "torn": lambda *texts: pytest.approx(torn(*texts)),
    "words": words,
    "fidelity": lambda *texts: pytest.approx(list(fidelity(*texts))),
    "web_encoding": web_encoding,
    "encoding of a page": of_page,
    "read by a guess": guessed,
    "headings of HTML": lambda markup: outline(parse_html(markup.encode(), "guides/my_file.html", None)),
    "headings of Markdown": lambda text: outline(parse_markdown(text, "guides/my_file.md")),
}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"), [(name, *row) for name, rows in ROWS.items() for row in rows]
)
def test_what_it_gives(name: str, arguments: list[Any], expected: object) -> None:
    assert CALLS[name](*arguments) == expected


def test_what_a_line_s_end_may_cut_is_no_word_and_a_letter_that_may_be_a_word_no_sure_number() -> None:
    assert vocabulary(["the infor-", "mation is"]) == {"the", "is"}
    assert [getattr(number_of(text), "sure", None) for text in ("A pump moves water", "A. Pumps")] == [False, True]


def test_an_accent_above_a_letter_is_composed_and_one_beside_it_stays() -> None:
    assert word_text([("M", 0, 8), ("\u00a8", 9.5, 12), ("u", 9, 13), ("l", 14, 15)]) == "M\u00fcl"
    assert word_text([("x", 0, 5), ("^", 6, 10), ("e", 11, 15)]) == "x^e"


@given(st.lists(st.tuples(st.characters(), st.floats(0, 600), st.floats(0, 600))))
def test_any_characters_give_valid_text(letters: list[tuple[str, float, float]]) -> None:
    word_text(letters).encode()


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    number = number_of(text)
    assert number is None or 0 < number.length <= len(text)


def test_search_finds_formulas_as_people_type_them_and_a_number_with_a_note_s_mark() -> None:
    assert terms_of(f"H{lowered('2')}O") == ["h2o"]
    assert terms_of(f"km{raised('2', 'km')}") == terms_of("km2")
    assert "5th" in terms_of(f"5{raised('th', '5')}")
    assert "320" in terms_of(f"320{note_mark('1')}")


def test_no_words_in_a_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        fidelity("a", "a", in_a_row=0)


@given(st.text(), st.text(), st.integers(1, 4))
def test_shares_are_bounded_and_change_places_with_the_texts(source: str, result: str, in_a_row: int) -> None:
    lost, invented = fidelity(source, result, in_a_row)
    assert 0 <= lost <= 1
    assert 0 <= invented <= 1
    assert fidelity(result, source, in_a_row) == (invented, lost)
    assert fidelity(source, source, in_a_row) == (0, 0)


def test_each_rule_is_one_line_with_its_first_text_and_parts_follow() -> None:
    left_out = LeftOut()
    left_out.append("page 7: broken")
    left_out.text("navigation left out", "  Next \n page of the manual about pumps and their oil, all of them")
    left_out.text("hidden text left out", "東京")  # two words, as everywhere
    left_out.text("navigation left out", "Home")
    left_out.text("hidden text left out", " - ")
    assert left_out.lines == (
        'navigation left out: 2 x, 14 words, e.g. "Next page of the manual about pumps and ..."',
        'hidden text left out: 1 x, 2 words, e.g. "東京"',
        "page 7: broken",
    )
