"""Word documents (.docx) as documents, by python-docx and their own XML.

Headings by outline level, lists, tables, images, notes.

Pages are unknown, because Word breaks them only when it shows the document.
"""

import io
import struct
import zipfile
import zlib
from itertools import chain

import docx
from docx.document import Document as WordDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from lxml import etree

from common.errors import DataError
from documents.left_out import LeftOut
from documents.normal_form import MAX_LIST_LEVELS, NO_TITLE, normalized, one_line, title_of
from documents.reading.captions import CaptionPiece, with_captions
from documents.reading.docx_numbering import Numbering
from documents.reading.docx_styles import BODY_LEVEL, DocxStyle, Styles, number_of, value
from documents.reading.docx_text import DocxText, all_text, boxes_of, children, images_of
from documents.reading.image_files import image_of
from documents.reading.outline import titled
from documents.reading.zip_bounds import check_zip
from documents.records import Document, Heading, Image, Paragraph

_BROKEN = (OpcError, zipfile.BadZipFile, zlib.error, struct.error, etree.LxmlError, EOFError, OSError,
           NotImplementedError, RuntimeError, AttributeError, LookupError, TypeError, ValueError)  # fmt: skip
_CONTENTS = "tables of contents left out"
_BESIDE = {  # parts beside the text -> the rule that leaves them out
    RELATIONSHIP_TYPE.HEADER: "headers and footers left out", RELATIONSHIP_TYPE.FOOTER: "headers and footers left out",
    RELATIONSHIP_TYPE.COMMENTS: "comments left out",
}  # fmt: skip
_TRANSPARENT = frozenset([qn("w:sdtContent"), qn("w:ins"), qn("w:moveTo"), qn("w:customXml"), qn("w:smartTag")])


def parse_docx(data: bytes, name: str) -> Document:
    """A document from a Word file, in normal form.

    Raises:
        DataError: If the file is broken or encrypted, or unpacks to too much.
    """
    check_zip(data, name)
    try:
        word = docx.Document(io.BytesIO(data))
        reader = _Reader(word)
        reader.read_children(word.element.body)
        core_title = one_line(word.core_properties.title or "")
    except _BROKEN as error:
        reason = one_line(str(error))[:200] or type(error).__name__
        raise DataError(
            f"{name} is no Word document that can be read ({reason}): open it in Word or LibreOffice and save it as "
            ".docx."
        ) from error
    named = reader.title or ("" if NO_TITLE.fullmatch(core_title) else core_title)
    title, blocks = titled(with_captions(reader.pieces), named)
    return normalized(Document(name, title or title_of(name), tuple(blocks), left_out=reader.left_out.lines))


class _Reader:
    """Reads the body of a document in its order."""

    def __init__(self, word: WordDocument) -> None:
        self.pieces: list[CaptionPiece] = []
        self.title = ""
        self.left_out = LeftOut()
        self._part = word.part
        self._styles = Styles(self._related(RELATIONSHIP_TYPE.STYLES))
        self._numbering = Numbering(self._related(RELATIONSHIP_TYPE.NUMBERING))
        self._text = DocxText(self._styles, self.left_out)
        notes = (self._related(RELATIONSHIP_TYPE.FOOTNOTES), self._related(RELATIONSHIP_TYPE.ENDNOTES))
        self._notes = {
            (reference, note.get(qn("w:id"))): note
            for reference, root in zip((qn("w:footnoteReference"), qn("w:endnoteReference")), notes, strict=True)
            for note in (root if root is not None else ())
        }
        for relation in self._part.rels.values():
            if relation.reltype in _BESIDE and not relation.is_external:
                self.left_out.text(_BESIDE[relation.reltype], all_text(parse_xml(relation.target_part.blob)))

    def read_children(self, parent: etree._Element) -> None:
        """Add the blocks of an element; what only groups blocks is passed through."""
        for child in parent:
            if child.tag == qn("w:p"):
                self._paragraph(child)
            elif child.tag == qn("w:tbl"):
                self._table(child)
            elif child.tag == qn("w:sdt"):
                if value(child, "w:sdtPr/w:docPartObj/w:docPartGallery") != "Table of Contents":
                    self.read_children(child)
                else:
                    self.left_out.text(_CONTENTS, all_text(child))
            elif child.tag in _TRANSPARENT:
                self.read_children(child)
            elif child.tag == qn("w:altChunk"):
                self.left_out.append("a document within the document: not read")

    def _related(self, kind: str) -> etree._Element | None:
        """The root of a part that belongs to the document; None without one."""
        for relation in self._part.rels.values():
            if relation.reltype == kind and not relation.is_external:
                return parse_xml(relation.target_part.blob)
        return None

    def _table(self, element: etree._Element) -> None:
        rows = [list(children(row, "w:tc")) for row in children(element, "w:tr")]
        if len(rows) < 2 or max(map(len, rows)) < 2:  # a box around text, or columns of it
            for cell in chain.from_iterable(rows):
                self.read_children(cell)
        else:
            self.pieces.append(CaptionPiece(self._text.table(element, "")))
            self._images(element)
            self._read_notes()

    def _paragraph(self, element: etree._Element) -> None:
        properties = element.find(qn("w:pPr"))
        style = self._styles.style(value(properties, "w:pStyle") or None)
        if style.is_contents:
            self.left_out.text(_CONTENTS, all_text(element))
            return
        given = value(properties, "w:outlineLvl")
        outline = int(given) if given.isdecimal() else style.outline
        text = self._text.of(element)
        if text.strip():
            number = self._number(properties, style)
            if style.is_code:
                self._line(text, code=True)
            elif style.is_title and not self.title:
                self.title = one_line(text)
            elif outline is not None and outline < BODY_LEVEL and not style.is_caption:
                label = number[0] if number else ""
                self.pieces.append(CaptionPiece(Heading(one_line(f"{label} {text}"), outline + 1)))
            elif number is not None:
                mark = f"{number[1]}." if number[0] else "-"
                self._line(f"{'  ' * self._place(properties, style)}{mark} {one_line(text)}", code=False)
            else:
                self.pieces.append(CaptionPiece(Paragraph(one_line(text)), is_caption=style.is_caption))
        self._read_notes()
        self._images(element)
        for box in boxes_of(element):
            self.left_out.text("text boxes put behind their paragraphs", all_text(box))
            self.read_children(box)

    def _number(self, properties: etree._Element | None, style: DocxStyle) -> tuple[str, int] | None:
        """What Word prints before a paragraph; None if it has no number and no bullet."""
        list_id = value(properties, "w:numPr/w:numId") or style.list_id
        return self._numbering.next(list_id, self._place(properties, style)) if list_id not in ("", "0") else None

    def _place(self, properties: etree._Element | None, style: DocxStyle) -> int:
        return min(number_of(value(properties, "w:numPr/w:ilvl"), style.list_level), MAX_LIST_LEVELS)

    def _line(self, text: str, code: bool) -> None:
        """An item of a list, or a line of code, goes on with those just before it."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and isinstance(last.block, Paragraph) and (last.block.code if code else last.is_list):
            self.pieces.pop()
            text = f"{last.block.text}\n{text}"
        self.pieces.append(CaptionPiece(Paragraph(text, code=code), is_list=not code))

    def _images(self, element: etree._Element) -> None:
        for relation, description in images_of(element):
            part = self._part.related_parts.get(relation)
            found = None if part is None else image_of(part.blob)
            if found is None:
                where = "not in the file" if part is None else part.partname.rpartition("/")[2]
                self.left_out.append(f"image {description or relation}: {where}")
            else:
                self.pieces.append(CaptionPiece(Image(*found, text=description)))

    def _read_notes(self) -> None:
        """Footnotes and endnotes stand behind the paragraph or table that refers to them, with their marks."""
        references, self._text.notes = self._text.notes, []
        for reference, mark in references:
            note = self._notes.get((reference.tag, reference.get(qn("w:id"))))
            paragraphs = () if note is None else note.iter(qn("w:p"))
            if text := one_line(" ".join(map(self._text.of, paragraphs))):
                self.left_out.text("footnotes put behind their paragraphs", text)
                self.pieces.append(CaptionPiece(Paragraph(f"[{mark}] {text}" if mark else text)))
