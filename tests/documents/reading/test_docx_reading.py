"""Word documents: headings by outline level in any language, numbers, lists, merged cells, captions, hostile files."""

import io
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from docx.document import Document as WordDocument
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
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


def add(word: WordDocument, xml: str) -> None:
    """Add an element at the end of the body, whose very last one describes the page."""
    word.element.body[-1].addprevious(parse_xml(xml.replace(">", f" {nsdecls('w', 'wp', 'a', 'r')}>", 1)))


def rezipped(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """A file with changed parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            if (content := change(part, old.read(part))) is not None:
                new.writestr(part, content)
    return made.getvalue()


def numbered(word: WordDocument, levels: str, list_id: int) -> None:
    """Add a list definition; list `list_id` uses it, and list `list_id` + 1 too, from 5."""
    root = word.part.numbering_part.element
    first = root.find("{*}num")
    abstract = parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{list_id}">{levels}</w:abstractNum>')
    first.addprevious(abstract) if first is not None else root.append(abstract)
    root.append(parse_xml(f'<w:num {nsdecls("w")} w:numId="{list_id}"><w:abstractNumId w:val="{list_id}"/></w:num>'))
    root.append(
        parse_xml(
            f'<w:num {nsdecls("w")} w:numId="{list_id + 1}"><w:abstractNumId w:val="{list_id}"/>'
            '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
        )
    )


def level(place: int, style: str, text: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{place}"><w:start w:val="{start}"/><w:numFmt w:val="{style}"/><w:lvlText w:val="{text}"/>'
        "</w:lvl>"
    )


def item(word: WordDocument, list_id: int, place: int, text: str, style: str = "Normal") -> None:
    properties = f'<w:pStyle w:val="{style}"/><w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{list_id}"/></w:numPr>'
    add(word, f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")


def run(text: str, look: str = "") -> str:
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def headings(word: WordDocument) -> None:
    word.add_paragraph("The pump", "Title")
    word.add_heading("Use", 1)
    word.add_paragraph("Press  the\tbutton.").add_run("\nTwice.")
    word.add_heading("Deep", 4)
    word.add_heading("End", 1)


def headings_in_other_languages(word: WordDocument) -> None:
    for id_, name, outline, base in (
        ("berschrift1", "\u00dcberschrift 1", 0, ""), ("Kapitel", "Mein Kapitel", None, "berschrift1"),
        ("Abschnitt", "Abschnitt", 1, ""),
    ):  # fmt: skip
        style = word.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
        style.element.set(qn("w:styleId"), id_)
        if outline is not None:
            style.element.get_or_add_pPr().append(parse_xml(f'<w:outlineLvl {nsdecls("w")} w:val="{outline}"/>'))
        if base:
            style.element.append(parse_xml(f'<w:basedOn {nsdecls("w")} w:val="{base}"/>'))
    for id_ in ("berschrift1", "Abschnitt", "Kapitel"):
        add(word, f'<w:p><w:pPr><w:pStyle w:val="{id_}"/></w:pPr><w:r><w:t>{id_}</w:t></w:r></w:p>')
    add(word, '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>direct</w:t></w:r></w:p>')
    add(
        word,
        '<w:p><w:pPr><w:pStyle w:val="Kapitel"/><w:outlineLvl w:val="9"/></w:pPr><w:r><w:t>prose</w:t></w:r></w:p>',
    )


def numbered_headings(word: WordDocument) -> None:
    numbered(
        word, level(0, "upperRoman", "%1.") + level(1, "decimal", "%1.%2") + level(2, "lowerLetter", "%3)", 3), 900
    )
    for place, name in ((0, "A"), (1, "B"), (1, "C"), (2, "D"), (0, "E"), (1, "F"), (2, "G")):
        item(word, 900, place, name, f"Heading{place + 1}")


def lists(word: WordDocument) -> None:
    numbered(word, level(0, "decimal", "%1)") + level(1, "bullet", "\u2022"), 900)
    for place, name in ((0, "one"), (1, "inner"), (0, "two")):
        item(word, 900, place, name)
    word.add_paragraph("Between.")
    item(word, 900, 0, "three")
    item(word, 901, 0, "five")
    word.add_paragraph("dot", "List Bullet")
    item(word, 0, 0, "plain")


def merged_cells(word: WordDocument) -> None:
    table = word.add_table(3, 3)
    for row, texts in zip(table.rows, ("abc", "def", "ghi"), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    table.cell(0, 1).merge(table.cell(0, 2)).text = "wide"
    table.cell(1, 0).merge(table.cell(2, 0)).text = "high"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "inner"


def header_rows_and_boxes(word: WordDocument) -> None:
    for look in ('w:firstRow="0"', 'w:val="0000"', ""):
        table = word.add_table(3, 2)
        table._tbl.tblPr.find("{*}tblLook").attrib.clear()
        if look:
            name, value = re.fullmatch(r'w:(\w+)="(\w+)"', look).groups()  # type: ignore[union-attr]
            table._tbl.tblPr.find("{*}tblLook").set(f"{{{table._tbl.nsmap['w']}}}{name}", value)
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


def what_is_no_text(word: WordDocument) -> None:
    contents = '<w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
    add(word, f"<w:sdt>{contents}<w:sdtContent><w:p>{run('contents')}</w:p></w:sdtContent></w:sdt>")
    add(word, f"<w:sdt><w:sdtContent><w:p>{run('field')}</w:p></w:sdtContent></w:sdt>")
    word.styles.add_style("toc 1", WD_STYLE_TYPE.PARAGRAPH)
    word.add_paragraph("entry 7", "toc 1")
    add(
        word,
        f"<w:p><w:ins>{run('new ')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:hyperlink>"
        f"{run('link')}</w:hyperlink></w:p>",
    )
    word.add_paragraph("a = 1", word.styles.add_style("Source Code", WD_STYLE_TYPE.PARAGRAPH))
    word.add_paragraph("  b = 2", "Source Code")


def raised_hidden_and_struck_text(word: WordDocument) -> None:
    up, down = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'

    style = word.styles.add_style("Raised", WD_STYLE_TYPE.CHARACTER).element
    style.append(parse_xml(f"<w:rPr {nsdecls('w')}>{up}</w:rPr>"))
    style = word.styles.add_style("Secret", WD_STYLE_TYPE.PARAGRAPH).element
    style.append(parse_xml(f"<w:rPr {nsdecls('w')}><w:vanish/></w:rPr>"))
    in_style = '<w:rStyle w:val="Raised"/>'
    add(word, f"<w:p>{run('10')}{run('-', up)}{run('6', up)}{run(' km')}{run('2', in_style)}{run(' H')}"
        f"{run('2', down)}{run('O 5')}{run('th', up)}{run(' x')}{run('2', in_style + down)}</w:p>")  # fmt: skip
    add(word, f"<w:p>{run('a')}{run(' gone', '<w:vanish/>')}{run('9', '<w:dstrike/>')}"
        + run(" kept", '<w:vanish w:val="0"/><w:strike w:val="false"/>') + "</w:p>")  # fmt: skip
    add(word, f'<w:p><w:pPr><w:pStyle w:val="Secret"/></w:pPr>{run("secret")}</w:p>')
    ruby = f"<w:ruby><w:rt>{run('Tokyo')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby>"
    add(word, f"<w:p><w:r>{ruby}</w:r>{run('へ')}</w:p>")
    part = "<m:{0}><m:r><m:t>{1}</m:t></m:r></m:{0}>"
    formula = f"<m:sSup>{part.format('e', 'x')}{part.format('sup', '2')}</m:sSup>"
    formula += f"<m:f>{part.format('num', '1')}{part.format('den', '2')}</m:f>"
    add(word, f"<w:p><m:oMath {math}>{formula}</m:oMath></w:p>")


@pytest.mark.parametrize(
    "fill",
    [
        headings, headings_in_other_languages, numbered_headings, lists, merged_cells, header_rows_and_boxes, captions,
        what_is_no_text, raised_hidden_and_struck_text,
    ],
)  # fmt: skip
def test_a_file_is_read_as_the_markdown_in_word(fill: Callable[[WordDocument], object]) -> None:
    """Below the Markdown stands what was left out."""
    word = docx.Document()
    fill(word)
    found = read(word)
    left_out = "".join(f"\nleft out: {line}\n" for line in found.left_out)
    expected = Path(__file__).with_name("word").joinpath(f"{fill.__name__}.read")
    text = to_markdown(found).replace(Image(png(), ".png").file, "p.png")
    assert text + left_out == expected.read_text(encoding="utf-8")


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
    data = rezipped(
        saved(word), lambda part, content: b"\xd7\xcd\xc6\x9a metafile" if part.startswith("word/media") else content
    )
    document = parse_docx(data, "a.docx")
    assert document.blocks == ()
    assert document.left_out == ("image rId9: image1.png",)


def test_notes_stand_behind_their_paragraph_or_table_with_their_marks_and_what_stands_beside_is_counted() -> None:
    word = docx.Document()
    word.sections[0].header.paragraphs[0].text = "Pump manual"
    mark = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    add(word, f"<w:p>{run('$320')}{mark.format(2)}{run(' each')}</w:p>")
    cell = "<w:tc><w:p>{}</w:p></w:tc>"
    row = f"<w:tr>{cell.format(run('in') + mark.format(3))}{cell.format(run('5'))}</w:tr>"
    add(word, f"<w:tbl>{row}{row.replace(mark.format(3), '')}</w:tbl>")
    add(word, f"<w:p>{run('end')}</w:p>")
    names = f"<w:footnotes {nsdecls('w')}>"
    notes = "".join(f'<w:footnote w:id="{id_}"><w:p>{run(text)}</w:p></w:footnote>'
                    for id_, text in ((2, "Census."), (3, "Volts.")))  # fmt: skip
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, f"{names}{notes}</w:footnotes>".encode(), word.part.package)
    word.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    document = parse_docx(saved(word), "a.docx")
    shown = [block.rows if isinstance(block, Table) else getattr(block, "text", "") for block in document.blocks]
    assert shown == ["$320 [1] each", "[1] Census.", (("in [2]", "5"), ("in", "5")), "[2] Volts.", "end"]
    assert document.left_out == (
        'headers and footers left out: 1 x, 2 words, e.g. "Pump manual"',
        'footnotes put behind their paragraphs: 2 x, 2 words, e.g. "Census."',
    )


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


def test_a_huge_table_is_bounded() -> None:
    word = docx.Document()
    cell = '<w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>'
    add(word, f"<w:tbl>{f'<w:tr>{cell}{cell}</w:tr>' * 300}</w:tbl>")
    document = read(word)
    assert isinstance(document.blocks[0], Table)
    assert len(document.blocks[0].rows) == 200
    assert document.left_out == ("rows of a table after 200,000 cells",)
