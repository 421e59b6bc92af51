"""Text, pictures and tables within the elements of a Word document."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from docx.oxml.ns import qn
from lxml import etree

from documents.left_out import LeftOut
from documents.normal_form import one_line
from documents.raised import in_line, note_mark
from documents.reading.docx_styles import Styles, number_of, value
from documents.reading.html_tables import MAX_CELLS
from documents.reading.symbol_fonts import text_of_font, unicode_of
from documents.records import Table
from documents.written_numbers import written

_FALLBACK = (
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # says the same again for old programs
)
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_VML_IMAGE = "{urn:schemas-microsoft-com:vml}imagedata"
_LEFT_OUT = frozenset([_FALLBACK, qn("w:del"), qn("w:moveFrom"), qn("w:rPr"), qn("w:pPr")])
_RUN, _BOX = qn("w:r"), qn("w:txbxContent")
_NOTES = frozenset([qn("w:footnoteReference"), qn("w:endnoteReference")])
_RULES = {  # element -> the rule that leaves its text out
    qn("w:del"): "deleted text left out", qn("w:moveFrom"): "deleted text left out",
    qn("w:rt"): "readings of ruby left out",
}  # fmt: skip
_MATH_SCRIPTS = {f"{_MATH}sup": "sup", f"{_MATH}sub": "sub", f"{_MATH}den": "over"}
_SCRIPTS = {"superscript": "sup", "subscript": "sub"}  # as runs name them
_BLANKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_MAX_COLUMNS = 1000
_SYMBOL_FIELD = re.compile(
    r'\s*SYMBOL\s+(?P<code>0[xX][0-9A-Fa-f]{1,5}|[1-9]\d{0,5})\b(?:.*\\f\s*"?(?P<font>[^"\\]+))?'
)


def parts_of(element: etree._Element) -> Iterator[etree._Element]:
    """The elements below one in order, without deleted text, fallbacks and what stands in text boxes."""
    walk = etree.iterwalk(element, events=("start",))
    for _, part in walk:
        if part is not element and (part.tag in _LEFT_OUT or part.tag == _BOX):
            walk.skip_subtree()
        if part.tag not in _LEFT_OUT:
            yield part


class DocxText:
    """Reads the text of paragraphs and tables, and numbers the notes that it meets.

    Args:
        styles: The styles of the document.
        left_out: Gets what is left out.
    """

    def __init__(self, styles: Styles, left_out: LeftOut) -> None:
        self.left_out = left_out
        self.notes: list[tuple[etree._Element, str]] = []  # references that were met, with their marks
        self._styles = styles
        self._counts: Counter[str] = Counter()  # of references of each kind

    def of(self, element: etree._Element) -> str:
        """The text of a paragraph, with its line breaks and tabs."""
        pieces: list[tuple[str, str]] = []  # how they stand in the line, text
        style = value(element, "w:pPr/w:pStyle") or None
        script = font = ""
        walk = etree.iterwalk(element, events=("start",))
        for _, part in walk:
            tag = part.tag
            rule = _RULES.get(tag)
            if tag == _RUN:
                rule, script, font = self._styles.look(part, style)
            if rule:
                self.left_out.text(rule, all_text(part))
                walk.skip_subtree()
            elif tag in _LEFT_OUT or (tag == _BOX and part is not element):
                walk.skip_subtree()
            elif tag in _MATH_SCRIPTS and part is not element:
                pieces.append((_MATH_SCRIPTS[tag], self.of(part)))
                walk.skip_subtree()
            elif tag in _NOTES:
                pieces.append(("mark", self._mark(part)))
            elif tag in (qn("w:t"), f"{_MATH}t"):
                text = part.text or ""
                pieces.append((script, text_of_font(font, text)) if tag == qn("w:t") else ("", text))
            elif tag == qn("w:sym"):
                pieces.append((script, self._symbol(part.get(qn("w:font")) or font, part.get(qn("w:char")) or "")))
            elif tag == qn("w:instrText") and (field := _SYMBOL_FIELD.match(part.text or "")):
                pieces.append((script, self._symbol(field["font"] or font, hex(int(field["code"], 0)))))
            elif tag in _BLANKS:
                pieces.append(("", _BLANKS[tag]))
        text = ""
        for script, group in groupby(pieces, itemgetter(0)):
            text += in_line(_SCRIPTS.get(script, script), "".join(piece for _, piece in group), text)
        return text

    def _symbol(self, font: str, code: str) -> str:
        """The sign of a font by its code in hexadecimal digits."""
        shown = unicode_of(font, int(code, 16)) if re.fullmatch(r"(?:0x)?[0-9A-Fa-f]{1,6}", code) else "\ufffd"
        if shown == "\ufffd":
            self.left_out.text(f"signs of fonts that are unknown read as {shown}", f"{font} {code}")
        return shown

    def _mark(self, reference: etree._Element) -> str:
        """The mark of a note: notes are counted; one with a mark of its own has that in the text."""
        self._counts[reference.tag] += 1
        count = self._counts[reference.tag]
        mark = str(count) if reference.tag == qn("w:footnoteReference") else written(count, "lowerRoman")
        if reference.get(qn("w:customMarkFollows")) in ("1", "true", "on"):
            mark = ""
        self.notes.append((reference, mark))
        return note_mark(mark)

    def table(self, element: etree._Element, caption: str) -> Table:
        """A table; what a merged cell spans has its text in each place."""
        rows: list[tuple[str, ...]] = []
        cells = marked = 0
        for row in children(element, "w:tr"):
            line = [""] * min(number_of(value(row, "w:trPr/w:gridBefore")), _MAX_COLUMNS)
            for cell in children(row, "w:tc"):
                merged = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
                continues = merged is not None and merged.get(qn("w:val")) != "restart"
                above = rows[-1][len(line)] if continues and rows and len(line) < len(rows[-1]) else ""
                width = min(number_of(value(cell, "w:tcPr/w:gridSpan"), 1), _MAX_COLUMNS - len(line))
                line += [above or self._cell(cell)] * width
            cells += len(line)
            if cells > MAX_CELLS:
                self.left_out.append(f"rows of a table after {MAX_CELLS:,} cells")
                break
            rows.append(tuple(line))
            marked += marked == len(rows) - 1 and _is_on(row.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}"))
        return Table(tuple(rows), marked or int(_first_row_is_header(element) and len(rows) > 1), caption)

    def _cell(self, cell: etree._Element) -> str:
        """The paragraphs of a cell on one line, those of tables and text boxes within too."""
        found = []
        walk = etree.iterwalk(cell, events=("start",))
        for _, part in walk:
            if part.tag == _FALLBACK:
                walk.skip_subtree()
            elif part.tag == qn("w:p"):
                found.append(self.of(part))
        return one_line(" ".join(found))


def all_text(element: etree._Element) -> str:
    """All text below an element, deleted and hidden text too."""
    return " ".join(part.text or "" for part in element.iter(qn("w:t"), qn("w:delText")))


def boxes_of(element: etree._Element) -> list[etree._Element]:
    """The text boxes that hang on a paragraph."""
    return [part for part in parts_of(element) if part.tag == _BOX]


def images_of(element: etree._Element) -> list[tuple[str, str]]:
    """The pictures of a paragraph: the id of each relation to a file, and its description."""
    found, description = [], ""
    for part in parts_of(element):
        if part.tag == qn("wp:docPr"):
            description = one_line(part.get("descr") or "")
        elif part.tag == qn("a:blip") and part.get(qn("r:embed")):
            found.append((str(part.get(qn("r:embed"))), description))
        elif part.tag == _VML_IMAGE and part.get(qn("r:id")):
            found.append((str(part.get(qn("r:id"))), ""))
    return found


def children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Children of a name, also within content controls: the rows of a table, without those within; cells of a row."""
    for child in element:
        if child.tag == qn(name):
            yield child
        elif child.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml")):
            yield from children(child, name)


def _first_row_is_header(table: etree._Element) -> bool:
    """Whether the table's style sets off the first row."""
    look = table.find(f"{qn('w:tblPr')}/{qn('w:tblLook')}")
    if look is None:
        return True
    if (first := look.get(qn("w:firstRow"))) is not None:
        return first in ("1", "true", "on")
    bits = look.get(qn("w:val")) or "0020"
    return bool(int(bits, 16) & 0x20) if all(digit in "0123456789abcdefABCDEF" for digit in bits) else True


def _is_on(element: etree._Element | None) -> bool:
    return element is not None and element.get(qn("w:val")) not in ("0", "false", "off")
