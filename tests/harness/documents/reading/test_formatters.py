"""The type of a file by its content, and the formatter for it."""

import io
import zipfile
from importlib.util import find_spec

import docx
import pytest
from reportlab.pdfgen.canvas import Canvas

from common.documents import Document, Heading, Image, Paragraph, Table
from common.errors import DataError, UserError
from harness.documents.reading import formatters
from harness.documents.reading.docling_reading import from_docling
from harness.documents.reading.file_types import file_type
from harness.documents.reading.formatters import formatter_for
from harness.documents.reading.pdf_reading import PdfFormatter


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(name, "x")
    return file.getvalue()


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
        (b"text <b>x</b>", "a.txt", "markdown"),
        (b"# Title", "a.html", "markdown"),
        (b"<!---->" * 280 + b"text", "a.md", "markdown"),
        ("größer".encode("latin-1"), "a.md", "markdown"),
        ("größer".encode("utf-16"), "a.txt", "markdown"),
        (b"page one\x0cpage two\x0c", "a.txt", "markdown"),
    ],
)
def test_types_are_told_by_content(data: bytes, name: str, kind: str) -> None:
    assert file_type(data, name) == kind


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.doc is empty."),
        (b" \x00\n", "a.doc is empty."),
        (zipped("xl/workbook.xml"), "a.doc is a zip file that holds no Word document. Allowed are PDF, DOCX, HTML, "
                                    "Markdown and plain text."),
        (b"PK\x03\x04 broken", "a.doc is a broken zip file (File is not a zip file): save it again."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old",
         "a.doc is an encrypted or old Office file: save it as .docx without a password. Allowed are PDF, DOCX, HTML, "
         "Markdown and plain text."),
        (b"\x89PNG\r\n\x1a\n", "a.doc is a picture. Allowed are PDF, DOCX, HTML, Markdown and plain text."),
        (bytes(range(256)), "a.doc is no text. Allowed are PDF, DOCX, HTML, Markdown and plain text."),
    ],
)  # fmt: skip
def test_other_types_are_refused_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(DataError) as found:
        file_type(data, "a.doc")
    assert str(found.value) == message


def read(data: bytes, name: str, **options: object) -> Document:
    return formatter_for(data, name, **options).read(data, name)  # type: ignore[arg-type]


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
        document = read(data, name)
        assert (document.title, document.blocks, document.left_out, document.name) == ("Pump", expected, (), name)


def test_pdf_files_have_their_own_formatter() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 700, "The pump is strong and needs no oil at all.")
    canvas.save()
    assert isinstance(formatter_for(file.getvalue(), "a.pdf"), PdfFormatter)
    document = read(file.getvalue(), "a.html")
    assert document.blocks == (Paragraph("The pump is strong and needs no oil at all.", 1),)
    assert document.left_out == ("named .html, read as pdf",)


def test_a_wrong_suffix_is_noted() -> None:
    assert read(b"<html><p>x", "a.md").left_out == ("named .md, read as html",)
    assert read(b"<html><p>x", "notes").left_out == ()


def test_images_come_from_the_loader_alone() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(9)
    for data in (b"<html><img src='p.png' alt='Pump'>", b"![Pump](p.png)"):
        assert read(data, "a", load_image={"p.png": png}.get).blocks == (Image(png, ".png", "Pump"),)
        assert read(data, "a").blocks == (Paragraph("Pump"),)


def test_missing_packages_are_one_line_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatters, "find_spec", lambda name: None if name == "lxml" else find_spec(name))
    with pytest.raises(
        UserError,
        match=(
            r"^html files are read with packages that are not installed \(lxml\): pip install "
            r"'lightning-rag\[documents\]'\.$"
        ),
    ):
        formatter_for(b"<html>", "a.html")


@pytest.mark.skipif(find_spec("docling") is not None, reason="docling is installed")
def test_docling_is_refused_without_its_package() -> None:
    with pytest.raises(
        UserError,
        match=(
            r"^engine docling needs the package docling, which is not installed: pip install docling, or use engine "
            r"auto\.$"
        ),
    ):
        read(b"# A", "a.md", engine="docling")


def test_the_markdown_of_docling_is_read() -> None:
    text = (
        "## Pump P-100\n\nIntro &amp; more\n\n<!-- docling page break -->\n\n## 1 Ratings\n\nTable 1. Sizes\n\n"
        "| a   |   b |\n|-----|-----|\n"
        "| x   |   1 |\n\n<!-- image -->\n\n<!-- docling page break -->\n\n- one\n- two\n\n```\ncode\n```"
    )
    document = from_docling(text, "a.pdf", 3)
    assert document.blocks == (
        Heading("Pump P-100", 1, 1), Paragraph("Intro & more", 1), Heading("1 Ratings", 1, 2),
        Table((("a", "b"), ("x", "1")), 1, "Table 1. Sizes", 2), Paragraph("- one\n- two", 3),
        Paragraph("code", 3, code=True),
    )  # fmt: skip
    assert (document.pages, document.title) == (3, "a")
