"""Word documents: headings by outline level in any language, numbers, lists, merged cells, captions, hostile files."""

import io
import re
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import docx
import pytest
from docx.document import Document as WordDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.oxml import serialize_part_xml
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml.ns import nsdecls, qn
from docx.oxml.parser import parse_xml
from PIL import Image as Pictures

from common.errors import DataError
from documents.markdown_writing import to_markdown
from documents.reading.docx_reading import parse_docx
from documents.records import Document, Heading, Image, Paragraph, Table


def png() -> bytes:
    """A real picture, black."""
    file = io.BytesIO()
    Pictures.new("L", (2, 1)).save(file, "PNG")
    return file.getvalue()


def saved(word: WordDocument) -> bytes:
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def read(word: WordDocument) -> Document:
    return parse_docx(saved(word), "guides/my_file.docx")


def rezipped(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """A file with changed parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            if (content := change(part, old.read(part))) is not None:
                new.writestr(part, content)
    return made.getvalue()


def headings(word: WordDocument) -> None:
    word.add_paragraph("The pump", "Title")
    word.add_heading("Use", 1)
    word.add_paragraph("Press  the\tbutton.").add_run("\nTwice.")
    word.add_heading("Deep", 4)
    word.add_heading("End", 1)


def merged_cells(word: WordDocument) -> None:
    table = word.add_table(3, 3)
    for row, texts in zip(table.rows, ("abc", "def", "ghi"), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    table.cell(0, 1).merge(table.cell(0, 2)).text = "wide"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "high"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"


def header_rows_and_boxes(word: WordDocument) -> None:
    for given in ({qn("w:firstRow"): "0"}, {qn("w:val"): "0000"}, {}):
        table = word.add_table(3, 2)
        look = table._tbl.tblPr.find("{*}tblLook")
        look.attrib.clear()
        look.attrib.update(given)
        for cell in (cell for row in table.rows for cell in row.cells):
            cell.text = "x"
        word.add_paragraph("-")
    for row in table.rows[:2]:
        row._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {nsdecls('w')}/>"))
    word.add_table(1, 1).cell(0, 0).text = "boxed"
    word.add_table(1, 2).cell(0, 1).text = "beside"


def captions(word: WordDocument) -> None:
    word.add_paragraph("Table 1: Sizes", "Caption")
    word.add_table(2, 2).cell(0, 0).text = "first"
    word.add_picture(io.BytesIO(png()))
    word.add_paragraph("Figure 1: Wiring", "Caption")
    word.add_table(2, 2).cell(0, 0).text = "second"
    word.add_paragraph("Abbildung 2", "Caption")
    word.add_paragraph("Table 3 follows.")
    word.add_paragraph("Text.")
    word.add_paragraph("Table 4: Rows")
    word.add_table(2, 2).cell(0, 0).text = "third"


def of_xml(file: Path) -> WordDocument:
    """A document with the body, styles, numbering, header and footnotes of an XML file."""
    word = docx.Document()
    names = f'{nsdecls("w")} xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    for part in parse_xml(f"<parts {names}>{file.read_text(encoding='utf-8')}</parts>"):
        if part.tag == "header":
            word.sections[0].header.paragraphs[0].text = part.text
        elif part.tag == "footnotes":
            part.tag = qn("w:footnotes")
            kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
            notes = Part(PackURI("/word/footnotes.xml"), kind, serialize_part_xml(part), word.part.package)
            word.part.relate_to(notes, RELATIONSHIP_TYPE.FOOTNOTES)
        elif part.tag == "body":
            word.element.body[-1:-1] = part  # whose very last one describes the page
        else:
            into = word.styles.element if part.tag == "styles" else word.part.numbering_part.element
            into.extend(part)
    return word


WORD = Path(__file__).with_name("word")
FILLED: dict[str, Callable[[WordDocument], object]] = {
    "headings": headings, "merged_cells": merged_cells, "header_rows_and_boxes": header_rows_and_boxes,
    "captions": captions,
}  # fmt: skip


@pytest.mark.parametrize("file", sorted(WORD.glob("*.read")), ids=lambda file: file.stem)
def test_a_file_is_read_as_the_markdown_in_word(file: Path) -> None:
    """Files of the XML beside it, or of the function of that name; below the Markdown stands what was left out."""
    if fill := FILLED.get(file.stem):
        fill(word := docx.Document())
    else:
        word = of_xml(file.with_suffix(".xml"))
    found = read(word)
    left_out = "".join(f"\nleft out: {line}\n" for line in found.left_out)
    text = to_markdown(found).replace(Image(png(), ".png").file, "p.png")
    assert text + left_out == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "given", "title", "chapters"),
    [
        ("AB", "The pump", "The pump", "AB"),
        ("AB", "Word Document", "my_file", "AB"),
        ("AB", "A", "A", "B"),
        ("A", "", "A", ""),
    ],
)
def test_the_title_is_that_of_the_properties_or_the_only_chapter_or_the_file_name(
    names: str, given: str, title: str, chapters: str
) -> None:
    word = docx.Document()
    word.core_properties.title = given
    for name in names:
        word.add_heading(name, 1)
    word.add_heading("Part", 2)
    found = read(word)
    assert found.title == title
    assert found.blocks == (*(Heading(name, 1) for name in chapters), Heading("Part", 2 if chapters else 1))


def test_pictures_that_cannot_be_read_are_reported() -> None:
    word = docx.Document()
    word.add_picture(io.BytesIO(png()))
    metafile = b"\xd7\xcd\xc6\x9a metafile"
    data = rezipped(saved(word), lambda part, old: metafile if part.startswith("word/media") else old)
    document = parse_docx(data, "a.docx")
    assert document.blocks == ()
    assert document.left_out == ("image rId9: image1.png",)


@cache
def broken_files() -> dict[str, bytes]:
    good = saved(docx.Document())
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"<w/>" + bytes(70 * 2**20))
    lying = bytearray(bomb.getvalue())
    directory = lying.rindex(b"PK\x01\x02")
    lying[directory + 24 : directory + 28] = struct.pack("<I", 100)  # declares 100 bytes
    deep = b"<w:x>" * 100_000

    def with_document(content: bytes) -> bytes:
        return rezipped(good, lambda part, old: content if part == "word/document.xml" else old)

    word = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    laughs = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 12))
    return {
        "bomb": bomb.getvalue(),
        "lying bomb": bytes(lying),
        "truncated": good[: len(good) // 2],
        "no document": rezipped(good, lambda part, old: None if part == "word/document.xml" else old),
        "no content types": rezipped(good, lambda part, old: None if part == "[Content_Types].xml" else old),
        "no XML": with_document(b"hello"),
        "empty part": with_document(b""),
        "deep": with_document(b"<w:document " + word + b"><w:body>" + deep),
        "billion laughs": with_document(b'<!DOCTYPE x [<!ENTITY e0 "ha">' + laughs + b"]><w:document " + word
            + b' w:a="&e11;"/>'),
        "bad relation": rezipped(good, lambda part, old: old.replace(b"document.xml", b"nowhere.xml")
            if part == "_rels/.rels" else old),
        "macro": rezipped(good, lambda part, old: old.replace(b"document.main+xml", b"other+xml")),
    }  # fmt: skip


@pytest.mark.parametrize("kind", broken_files())
def test_broken_and_hostile_files_are_one_line(kind: str) -> None:
    with pytest.raises(DataError, match=r"^a\.docx (is|unpacks)") as found:
        parse_docx(broken_files()[kind], "a.docx")
    assert ("Is it a zip bomb?" in str(found.value)) == (kind == "bomb")
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500


def test_external_references_are_not_followed() -> None:
    word = docx.Document()
    word.add_paragraph("text")
    doctype = b'<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'

    def change(part: str, old: bytes) -> bytes:
        if part != "word/document.xml":
            return old
        return re.sub(rb"(<\?xml[^>]*>)", rb"\1" + doctype, old).replace(b"text", b"a &secret; b")

    assert parse_docx(rezipped(saved(word), change), "a.docx").blocks == (Paragraph("a"),)


def test_a_huge_table_is_bounded(tmp_path: Path) -> None:
    cell = '<w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>'
    (tmp_path / "a.xml").write_text(f"<body><w:tbl>{f'<w:tr>{cell}{cell}</w:tr>' * 300}</w:tbl></body>")
    document = read(of_xml(tmp_path / "a.xml"))
    assert isinstance(document.blocks[0], Table)
    assert len(document.blocks[0].rows) == 200
    assert document.left_out == ("rows of a table after 200,000 cells",)
