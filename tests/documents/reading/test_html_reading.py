"""HTML pages as documents: structure by hand, hostile pages; `test_pages.py` has whole ones."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from documents.normal_form import normalized
from documents.reading.html_reading import parse_html
from documents.records import Document, Image, Paragraph, Table

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def read(markup: str) -> Document:
    return parse_html(markup.encode(), "guides/my_page.html", None)


def test_what_is_huge_or_deep_is_bounded() -> None:
    document = read(f"<table><tr>{'<td colspan=1000 rowspan=999999999>x' * 3}</tr>{'<tr></tr>' * 5000}</table>")
    (found,) = document.blocks
    assert isinstance(found, Table)
    assert (len(found.rows), document.left_out) == (200, ("rows of a table after 200,000 cells",))
    left_out = read("<img alt=x src=p.png>" * 1000).left_out
    assert (len(left_out), left_out[-2:]) == (21, ("image p.png: not read", "and 980 more"))
    assert read("<p>a" + "<sup>" * 1500 + "b").blocks == (Paragraph("a^(^(^(^ᵇ)))"),)


def test_images_are_only_read_by_the_caller_s_loader() -> None:
    uri = "data:image/png;base64," + base64.b64encode(PNG).decode()
    page = (
        "<p>a <img src='http://host/x.png' alt='far'> b <img src='p.png' alt='near'><img src='deco.png' alt=''>"
        "c<img alt='data' src='" + uri + "'>"
    )
    assert read(page).blocks == (Paragraph("a far b near c"), Image(PNG, ".png", "data"))
    assert read(page).left_out == ("image http://host/x.png: not read", "image p.png: not read")
    asked: list[str] = []
    document = parse_html(page.encode(), "a.html", lambda source: asked.append(source) or {"p.png": PNG}.get(source))
    near, data = Image(PNG, ".png", "near"), Image(PNG, ".png", "data")
    assert document.blocks == (Paragraph("a far b"), near, Paragraph("c"), data)
    assert asked == ["http://host/x.png", "p.png"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<p>größer".encode(), "größer"),
        ("<p>größer".encode("utf-16"), "größer"),
        ("\ufeff<p>größer".encode(), "größer"),
        ("<p>größer".encode("latin-1"), "größer"),
        ("<p>\u201cso\u201d".encode("windows-1252"), "\u201cso\u201d"),
        ("<meta charset=shift_jis><p>日本語".encode("shift_jis"), "日本語"),
        ("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><p>Да".encode("koi8-r"), "Да"),
        ("<?xml version='1.0' encoding='iso-8859-2'?><html><p>ż</html>".encode("iso-8859-2"), "ż"),
        ("<meta charset=utf-16><p>größer".encode(), "größer"),
        ("<meta charset=no-such><p>größer".encode(), "größer"),
        (b"<meta charset=base64><p>plain", "plain"),
        (b"<meta charset=idna><p>plain" + b"x" * 100, "plain" + "x" * 100),
        (b"<meta charset=utf-8><p>\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"<p>a\x00b\x00</p>", "ab"),
        (b"<?xml version='1.0'?><!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'><!ENTITY y '&z;&z;'>]>"
         b"<p>a &x; &y; b</p>", "]> a &x; &y; b"),
    ],
)  # fmt: skip
def test_encodings_and_entities(data: bytes, text: str) -> None:
    assert " ".join(block.text for block in parse_html(data, "a.html").blocks if isinstance(block, Paragraph)) == text


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xef\xbb\xbf", b"\x00\x00"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^a\.html is an empty HTML file\.$"):
        parse_html(data, "a.html")


@pytest.mark.parametrize("tag", ["div", "b", "ul><li", "table><tr><td", "blockquote", "section", "span"])
def test_deep_nesting_is_bounded_and_reported(tag: str) -> None:
    document = read(f"<p>before</p>{f'<{tag}>' * 100_000}inside<p>after")
    assert document.blocks[0] == Paragraph("before")
    assert document.left_out == ("HTML after elements that are nested more than 2,000 levels deep",)
    fine = read(f"<p>before</p>{f'<{tag}>' * 500}inside")
    assert (fine.left_out, getattr(fine.blocks[-1], "text", "")[-6:]) == ((), "inside")


TAGS = ["p", "div", "ul", "ol", "li", "dl", "dt", "dd", "h1", "h3", "table", "tr", "td", "th", "thead", "caption",
        "pre", "section", "figure", "figcaption", "img", "a", "b", "br", "header", "nav", "main", "svg", "math",
        "article", "/p", "/div", "/ul", "/li", "/table", "/h1", "/pre", "/section", "/figure", "img alt=x src=p.png",
        "p class=caption", "div class=figure", "td colspan=3 rowspan=2"]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(TAGS).map("<{}>".format), st.text(max_size=8)), max_size=30))
@settings(deadline=None, max_examples=100)
def test_any_markup_becomes_a_document_in_normal_form(parts: list[str]) -> None:
    document = parse_html(f"<body>x{''.join(parts)}".encode(), "a.html", {"p.png": PNG}.get)
    assert normalized(document) == document
