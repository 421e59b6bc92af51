"""Word documents: headings by outline level in any language, numbers, lists, merged cells, captions, hostile files."""

import io
import re
import struct
import zipfile
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
from docx.table import Table as WordTable
from PIL import Image as Pictures

from common.errors import DataError
from documents.markdown_writing import to_markdown
from documents.reading.docx_reading import parse_docx
from documents.records import Heading, Image, Paragraph, Table


def png() -> bytes:
    """A real picture, black."""
    file = io.BytesIO()
    Pictures.new("L", (2, 1)).save(file, "PNG")
    return file.getvalue()


def saved(word: WordDocument) -> bytes:
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def rezipped(data: bytes, **changed: bytes | None) -> bytes:
    """A file without a part, or with another content of it; parts are named by their last words."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            content = changed.get(Path(part).stem.strip("[]"), old.read(part))
            if content is not None:
                new.writestr(part, content)
    return made.getvalue()


def part_of(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(name)


def headings(word: WordDocument) -> None:
    word.add_paragraph("The pump", "Title")
    word.add_heading("Use", 1)
    word.add_paragraph("Press  the\tbutton.").add_run("\nTwice.")
    word.add_heading("Deep", 4)
    word.add_heading("End", 1)


def table_of(word: WordDocument, *rows: str) -> WordTable:
    """A table of cells of one letter each."""
    table = word.add_table(len(rows), len(rows[0]))
    for cell, text in zip((cell for row in table.rows for cell in row.cells), "".join(rows), strict=True):
        cell.text = text.strip()
    return table


def merged_cells(word: WordDocument) -> None:
    table = table_of(word, "abc", "def", "ghi")
    table.cell(0, 1).merge(table.cell(0, 2)).text = "wide"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "high"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"


def header_rows_and_boxes(word: WordDocument) -> None:
    for given in ({qn("w:firstRow"): "0"}, {qn("w:val"): "0000"}, {}):
        table = table_of(word, "xx", "xx", "xx")
        look = table._tbl.tblPr.find("{*}tblLook")
        look.attrib.clear()
        look.attrib.update(given)
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
FILLED = {fill.__name__: fill for fill in (headings, merged_cells, header_rows_and_boxes, captions)}


@pytest.mark.parametrize("file", sorted(WORD.glob("*.read")), ids=lambda file: file.stem)
def test_a_file_is_read_as_the_markdown_in_word(file: Path) -> None:
    """Files of the XML beside it, or of the function of that name; below the Markdown stands what was left out."""
    if fill := FILLED.get(file.stem):
        fill(word := docx.Document())
    else:
        word = of_xml(file.with_suffix(".xml"))
    found = parse_docx(saved(word), "guides/my_file.docx")
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
    found = parse_docx(saved(word), "guides/my_file.docx")
    assert found.title == title
    assert found.blocks == (*(Heading(name, 1) for name in chapters), Heading("Part", 2 if chapters else 1))


def test_pictures_that_cannot_be_read_are_reported() -> None:
    word = docx.Document()
    word.add_picture(io.BytesIO(png()))
    document = parse_docx(rezipped(saved(word), image1=b"\xd7\xcd\xc6\x9a metafile"), "a.docx")
    assert (document.blocks, document.left_out) == ((), ("image rId9: image1.png",))


@cache
def broken_files() -> dict[str, bytes]:
    good = saved(docx.Document())
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"<w/>" + bytes(70 * 2**20))
    lying = bytearray(bomb.getvalue())
    directory = lying.rindex(b"PK\x01\x02")
    lying[directory + 24 : directory + 28] = struct.pack("<I", 100)  # declares 100 bytes
    word = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    laughs = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 12))
    relations, types = part_of(good, "_rels/.rels"), part_of(good, "[Content_Types].xml")
    return {
        "bomb": bomb.getvalue(),
        "lying bomb": bytes(lying),
        "truncated": good[: len(good) // 2],
        "no document": rezipped(good, document=None),
        "no content types": rezipped(good, Content_Types=None),
        "no XML": rezipped(good, document=b"hello"),
        "empty part": rezipped(good, document=b""),
        "deep": rezipped(good, document=word + b"><w:body>" + b"<w:x>" * 100_000),
        "billion laughs": rezipped(
            good, document=b'<!DOCTYPE x [<!ENTITY e0 "ha">' + laughs + b"]>" + word + b' w:a="&e11;"/>'
        ),
        "bad relation": rezipped(good, **{".rels": relations.replace(b"document.xml", b"nowhere.xml")}),
        "macro": rezipped(good, Content_Types=types.replace(b"document.main+xml", b"other+xml")),
    }


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

    file = saved(word)
    content = re.sub(rb"(<\?xml[^>]*>)", rb"\1" + doctype, part_of(file, "word/document.xml"))
    changed = rezipped(file, document=content.replace(b"text", b"a &secret; b"))
    assert parse_docx(changed, "a.docx").blocks == (Paragraph("a"),)


def test_a_huge_table_is_bounded(tmp_path: Path) -> None:
    cell = '<w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>'
    (tmp_path / "a.xml").write_text(f"<body><w:tbl>{f'<w:tr>{cell}{cell}</w:tr>' * 300}</w:tbl></body>")
    document = parse_docx(saved(of_xml(tmp_path / "a.xml")), "a.docx")
    assert isinstance(document.blocks[0], Table)
    assert len(document.blocks[0].rows) == 200
    assert document.left_out == ("rows of a table after 200,000 cells",)
