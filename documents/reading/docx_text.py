"""Text, pictures and tables within the elements of a Word document."""

from collections.abc import Iterator

from docx.oxml.ns import qn
from lxml import etree

from documents.normal_form import one_line
from documents.reading.html_tables import MAX_CELLS
from documents.records import Table

_FALLBACK = (
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # says the same again for old programs
)
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_VML_IMAGE = "{urn:schemas-microsoft-com:vml}imagedata"
_LEFT_OUT = frozenset([_FALLBACK, qn("w:del"), qn("w:moveFrom"), qn("w:rPr"), qn("w:pPr")])
_BOX = qn("w:txbxContent")
_BLANKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_MAX_COLUMNS = 1000


def parts_of(element: etree._Element) -> Iterator[etree._Element]:
    """The elements below one in order, without deleted text, fallbacks and what stands in text boxes."""
    walk = etree.iterwalk(element, events=("start",))
    for _, part in walk:
        if part is not element and (part.tag in _LEFT_OUT or part.tag == _BOX):
            walk.skip_subtree()
        if part.tag not in _LEFT_OUT:
            yield part


def text_of(element: etree._Element) -> str:
    """The text of a paragraph, with its line breaks and tabs."""
    found = []
    for part in parts_of(element):
        if part.tag in (qn("w:t"), _MATH):
            found.append(part.text or "")
        else:
            found.append(_BLANKS.get(part.tag, ""))
    return "".join(found)


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


def read_table(element: etree._Element, caption: str, left_out: list[str]) -> Table:
    """A table; what a merged cell spans has its text in each place.

    Args:
        element: The table.
        caption: Its caption.
        left_out: Gets a line if the table is too large.
    """
    rows: list[tuple[str, ...]] = []
    cells = marked = 0
    for row in rows_of(element):
        line = [""] * min(_count(row.find(f"{qn('w:trPr')}/{qn('w:gridBefore')}"), 0), _MAX_COLUMNS)
        for cell in cells_of(row):
            merged = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
            continues = merged is not None and merged.get(qn("w:val")) != "restart"
            above = rows[-1][len(line)] if continues and rows and len(line) < len(rows[-1]) else ""
            width = min(_count(cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}"), 1), _MAX_COLUMNS - len(line))
            line += [above or cell_text(cell)] * width
        cells += len(line)
        if cells > MAX_CELLS:
            left_out.append(f"rows of a table after {MAX_CELLS:,} cells")
            break
        rows.append(tuple(line))
        marked += marked == len(rows) - 1 and _is_on(row.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}"))
    return Table(tuple(rows), marked or int(_first_row_is_header(element) and len(rows) > 1), caption)


def rows_of(table: etree._Element) -> Iterator[etree._Element]:
    """The rows of a table, not those of tables within."""
    return _content(table, "w:tr")


def cells_of(row: etree._Element) -> Iterator[etree._Element]:
    """The cells of a row."""
    return _content(row, "w:tc")


def cell_text(cell: etree._Element) -> str:
    """The paragraphs of a cell on one line, those of tables within too."""
    return one_line(" ".join(text_of(paragraph) for paragraph in cell.iter(qn("w:p"))))


def _content(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Children of a name, also within content controls."""
    for child in element:
        if child.tag == qn(name):
            yield child
        elif child.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml")):
            yield from _content(child, name)


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


def _count(element: etree._Element | None, default: int) -> int:
    text = "" if element is None else (element.get(qn("w:val")) or "")
    return int(text) if text.isdecimal() and len(text) < 7 else default
