"""Documents as Markdown: the same blocks after writing and reading; `test_pages.py` has users' files."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.markdown_writing import to_markdown
from documents.normal_form import normalized
from documents.reading.markdown_reading import parse_markdown
from documents.records import Document, Heading, Image, Paragraph, Table

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
MARKS = ["|", "\\", "#", "##", "*", "**", "_", "__", "`", "```", "~~", "~~~", "[", "](", "]:", "!", "![", "<", "<!--",
         "-->", "&", "&amp;", "&#35;",
         "-", "---", "- -", "===", "+", ">", "1.", "1)", "12345678901.", "{", "$", ":", "Table 3:", "<div>", "</p>",
         "http://a.b", "x^2^", "x~1~", "[^1]", "\t",
         "\n", "\r", "\x00", "\u2028", "\x85", "\xa0", "\u3000", "\u200b", "表1", "é", "ß", "日本",
         "🪶", "\ud800", "word", "a_b", "x", ".", "\"", "'", "    "]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(MARKS), max_size=8).flatmap(
        lambda parts: st.sampled_from(["".join(parts), " ".join(parts)])
    ),
    st.text(max_size=30),
)
pages = st.one_of(st.none(), st.integers(1, 4))
items = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["-", "1.", "2.", "10.", "-"]), texts), max_size=6)
lists = items.map(lambda rows: "\n".join(f"{'  ' * level}{marker} {text}" for level, marker, text in rows))
rows = st.lists(st.lists(texts, max_size=4).map(tuple), max_size=4).map(tuple)
blocks = st.one_of(
    st.builds(Heading, texts, st.integers(-1, 9), pages),
    st.builds(Paragraph, st.one_of(texts, lists), pages, st.booleans()),
    st.builds(Table, rows, st.integers(0, 3), st.one_of(st.just(""), texts), pages),
    st.builds(Image, st.just(PNG), st.just(".png"), texts, texts, pages),
)
documents = st.builds(Document, st.just("a/b.pdf"), texts, st.lists(blocks, max_size=6).map(tuple), pages)


def parse(text: str, *images: Image) -> Document:
    files = {f"images/{image.file}": image.data for image in images or (Image(PNG, ".png"),)}
    return parse_markdown(text, "a/b.pdf", files.get)


@given(documents)
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_again(document: Document) -> None:
    expected = normalized(document)
    assert normalized(expected) == expected
    assert parse(to_markdown(document)) == expected


def test_it_looks_like_markdown() -> None:
    """As in `pages/written.md`, which is written as it was read."""
    written = Path(__file__).with_name("pages").joinpath("written.md").read_text(encoding="utf-8")
    read = parse_markdown(written, "a/b.pdf", {"p.png": PNG}.get)
    lists = "- first\n  1. inner\n- second", "- a\n  2. b\n  3. c\n- d\n5. e"
    assert read.blocks == (
        Heading("1 Ratings_of_parts", 1, 1), Paragraph("Use 5 V [3] & #2, a*b or C:\\pump.", 1), Paragraph(lists[0], 1),
        Table((("", "V | A"), ("in", "5")), 1, "Table 1: Ratings", 2), Heading("Deep", 6, 2),
        Image(PNG, ".png", "Figure 1", 'says "on"', 2), Paragraph("a = 1\n\n  b", 2, code=True), Paragraph(lists[1]),
    )  # fmt: skip
    assert to_markdown(read) == written.replace("p.png", f"images/{Image(PNG, '.png').file}")


def test_an_image_that_is_not_read_stays_as_text() -> None:
    document = parse_markdown('See ![the *pump*](http://host/p.png "blue") here.', "a.md", {"other.png": PNG}.get)
    assert document.blocks == (Paragraph("See the pump blue here."),)
    assert document.left_out == ("image http://host/p.png: not read",)
    document = parse_markdown("See ![pump](my%20files/p.png) here.", "a.md", {"my files/p.png": PNG}.get)
    assert document.blocks == (Paragraph("See here."), Image(PNG, ".png", "pump"))
    document = parse_markdown("![pump](data:image/png;base64,iVBORw0KGgo=)", "a.md")
    assert document.blocks == (Image(PNG[:8], ".png", "pump"),)


HOSTILE = ["> " * 20_000 + "x", "- " * 20_000 + "x", "[" * 50_000, "*a " * 20_000, "`" * 50_000, "<" * 50_000,
           "![" * 20_000, "| " * 20_000 + "\n" + "|-" * 20_000, "&" * 50_000, "\\" * 50_000, "\x00" * 50_000,
           "(" * 50_000, "[a](" * 10_000, "\n".join("  " * n + "- x" for n in range(300)), "_a **b " * 10_000,
           "<!--" + " " * 50_000, "<!--" * 50_000, "<!-- page " * 20_000, "<div " * 20_000, "---\n" * 20_000,
           "# {#" * 10_000, "- " + "a\n" * 20_000, "|a|\n" * 20_000,
           "<b>x" * 5_000, "~~a~~" * 5_000, "x[^1]^1^~1~" * 5_000 + "\n\n[^1]: x",
           " > " * 20_000 + "\n" + "> " * 20_000 + "[^"]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_ends(text: str) -> None:
    document = parse_markdown(text, "a.md")
    assert parse_markdown(to_markdown(document), "a.md").blocks == document.blocks


def test_what_is_nested_too_deeply_is_reported() -> None:
    assert "nested" in parse_markdown("> " * 200 + "x", "a.md").left_out[0]
    assert not parse_markdown("> " * 20 + "x", "a.md").left_out
