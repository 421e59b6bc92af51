"""The type of a file by its content, its encoding, the document that it is read as, and images that it links to.

Pages of documentation generators and users' files in `pages` are read as the Markdown beside them (`.read`), below
which stands what was left out.
"""

import io
import zipfile
from pathlib import Path

import docx
import pytest

from common.errors import DataError
from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document
from documents.reading.file_types import file_type
from documents.reading.linked_images import LinkedImages
from documents.reading.markdown_reading import parse_markdown
from documents.records import Heading, Image, Paragraph
from tests.helpers.pdf_pages import pdf, text_page

PAGES = sorted(page for page in Path(__file__).with_name("pages").iterdir() if page.suffix != ".read")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
MOSTLY = "é und ä, ".encode() * 20 + b"\xe9\n"  # UTF-8 with one broken byte


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(name, "x")
    return file.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_read_as_the_markdown_beside_it(page: Path) -> None:
    document = read_document(page.read_bytes(), page.name, load_image={"p.png": PNG}.get)
    text = to_markdown(document)
    left_out = "".join(f"\nleft out: {line}\n" for line in document.left_out)
    assert text + left_out == page.with_suffix(".read").read_text(encoding="utf-8")
    if "![" not in text:
        assert parse_markdown(text, page.name).blocks == document.blocks


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"%PDF-1.7\n", "a.txt", "pdf"),
        (b"\xef\xbb\xbf\n%PDF-1.4", "a.pdf", "pdf"),
        (zipped("word/document.xml"), "a.html", "docx"),
        (b"<!DOCTYPE html><title>x", "a.md", "html"),
        (b"\xef\xbb\xbf  <!-- c -->\n<HTML>", "a", "html"),
        (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC ''><html>", "a.xhtml", "html"),
        ("<html>".encode("utf-16"), "a.htm", "html"),
        (b"text <b>x</b>", "a.html", "html"),
        (b"text <b>x</b>", "a.txt", "text"),
        (b"# Title", "a.html", "markdown"),
        (b"<!---->" * 280 + b"text", "a.md", "markdown"),
        ("größer".encode("latin-1"), "a.md", "markdown"),
        ("größer".encode("utf-16"), "a.txt", "text"),
        (b"page one\x0cpage two\x0c", "a.txt", "text"),
    ],
)
def test_types_are_told_by_content(data: bytes, name: str, kind: str) -> None:
    assert file_type(data, name) == kind


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"), (b" \x00\n", "is empty"), (zipped("xl/workbook.xml"), "holds no Word document"),
        (b"PK\x03\x04 broken", "a broken zip file"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old", "old Office file"),
        (b"\x89PNG\r\n\x1a\n", "a picture"), (bytes(range(256)), "is no text"),
        (b"From: <S>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\ttype=x\r\n\r\n<html>", "web page"),
        (b"Subject: a\n b\ncontent-type: text/html\n\n<p>", r"\(.mht\): save it as .html"),
    ],
)  # fmt: skip
def test_other_types_are_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(DataError, match=rf"^a\.doc .*{why}.*$"):
        file_type(data, "a.doc")


def test_every_type_gives_the_same_kind_of_document() -> None:
    word = docx.Document()
    word.add_paragraph("Pump", "Title")
    word.add_heading("Use", 1)
    word.add_paragraph("Press.")
    file = io.BytesIO()
    word.save(file)
    expected = (Heading("Use", 1), Paragraph("Press."))
    for data, name in (
        (file.getvalue(), "a.docx"), (b"<html><h1>Pump</h1><h2>Use</h2>Press.", "a.html"),
        (b"# Pump\n\n## Use\nPress.", "a.md"),
    ):  # fmt: skip
        document = read_document(data, name)
        assert (document.title, document.blocks, document.left_out, document.name) == ("Pump", expected, (), name)


TEXT = "The pump is strong and needs no oil at all."
BROKEN = "characters that cannot be read in"


@pytest.mark.parametrize(
    ("data", "name", "text", "left_out"),
    [
        (pdf(text_page([(72, 100, TEXT, "Helvetica", 12)])), "a.html", TEXT, "named .html, read as pdf"),
        (b"<html><p>x", "a.md", "x", "named .md, read as html"),
        (b"<html><p>x", "notes", "x", ""),
        (b"<html><img src='p.png' alt='Pump'>", "a", "Pump", "image p.png: not read"),
        (b"![Pump](p.png)", "a", "Pump", "image p.png: not read"),
        (MOSTLY, "a.txt", MOSTLY.decode(errors="replace").strip(), f"{BROKEN} utf-8: 1 x \ufffd"),
        (b"<meta charset=gb2312><p>\xb1\xea\xcc\xe2 \xff\xff", "a.html", "\u6807\u9898 \ufffd\ufffd",
         f"{BROKEN} gb18030: 2 x \ufffd"),
        *((template.format(text).encode(encoding), name, " ".join(text.split()), "")  # UTF-16 without a mark
          for encoding in ("utf-16-le", "utf-16-be")
          for text in ("It\u2019s é", "東京都\n\n天気", "plain")
          for name, template in (("a.txt", "{}"), ("a.html", "<!doctype html><html><p>{}</p>"))),
    ],
)  # fmt: skip
def test_texts_and_what_is_said_of_them(data: bytes, name: str, text: str, left_out: str) -> None:
    document = read_document(data, name)
    assert " ".join(getattr(block, "text", "") for block in document.blocks) == text
    assert document.left_out == ((left_out,) if left_out else ())


def test_images_come_from_the_loader_and_an_unclear_encoding_is_said() -> None:
    for data in (b"<html><img src='p.png' alt='Pump'>", b"![Pump](p.png)"):
        assert read_document(data, "a", load_image={"p.png": PNG}.get).blocks == (Image(PNG, ".png", "Pump"),)
    assert "as its encoding is unclear" in read_document("Größe".encode("mac-roman"), "a.txt").left_out[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/sub").mkdir(parents=True)
    (tmp_path / "root/a b.png").write_bytes(b"first")
    (tmp_path / "root/sub/c.png").write_bytes(b"second")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "root/link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "root/loop.png").symlink_to("loop.png")
    return tmp_path / "root"


def test_linked_images_in_the_folder_are_read_and_nothing_else_is(root: Path) -> None:
    images = LinkedImages(root / "sub/page.html", root)
    assert images("c.png") == images("./c.png?version=2#top") == b"second"
    assert images("../a%20b.png") == images("../a b.png") == b"first"
    for link in ("../../secret.png", "../link.png", "../loop.png", "/etc/passwd", "file:///etc/passwd", "..", "", "\0",
                 "http://192.0.2.1/x.png", "//192.0.2.1/x.png", "missing.png", "http://[broken", "c.png/" + "x" * 5000,
                 "%2e%2e/%2e%2e/secret.png"):  # fmt: skip
        images = LinkedImages(root / "sub/page.html", root)
        assert images(link) is None
        assert images.digests == {link: ""}


def test_a_changed_linked_image_is_noticed(root: Path) -> None:
    images, page = LinkedImages(root / "sub/page.html", root), root / "sub/page.html"
    images("c.png")
    images("missing.png")
    assert LinkedImages(page, root).unchanged(images.digests)
    assert not LinkedImages(root / "page.html", root).unchanged(images.digests)  # it was moved
    for name, content in (("missing.png", b"now it is there"), ("c.png", b"changed")):
        (root / "sub" / name).write_bytes(content)
        assert not LinkedImages(page, root).unchanged(images.digests)
        (root / "sub/missing.png").unlink(missing_ok=True)
