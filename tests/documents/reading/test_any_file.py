"""The type of a file by its content, and the document that it is read as."""

import io
import zipfile

import docx
import pytest

from common.errors import DataError
from documents.reading.any_file import read_document
from documents.reading.file_types import file_type
from documents.records import Heading, Image, Paragraph
from tests.helpers.pdf_pages import pdf, text_page


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
    ("data", "why"),
    [
        (b"", "is empty"), (b" \x00\n", "is empty"), (zipped("xl/workbook.xml"), "holds no Word document"),
        (b"PK\x03\x04 broken", "a broken zip file"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old", "old Office file"),
        (b"\x89PNG\r\n\x1a\n", "a picture"), (bytes(range(256)), "is no text"),
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


def test_a_pdf_file_under_another_name() -> None:
    text = "The pump is strong and needs no oil at all."
    document = read_document(pdf(text_page([(72, 100, text, "Helvetica", 12)])), "a.html")
    assert document.blocks == (Paragraph(text, 1),)
    assert document.left_out == ("named .html, read as pdf",)


def test_a_wrong_suffix_is_noted() -> None:
    assert read_document(b"<html><p>x", "a.md").left_out == ("named .md, read as html",)
    assert read_document(b"<html><p>x", "notes").left_out == ()


def test_images_come_from_the_loader_alone() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(9)
    for data in (b"<html><img src='p.png' alt='Pump'>", b"![Pump](p.png)"):
        assert read_document(data, "a", load_image={"p.png": png}.get).blocks == (Image(png, ".png", "Pump"),)
        assert read_document(data, "a").blocks == (Paragraph("Pump"),)
