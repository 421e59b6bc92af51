"""HTML tables as tables of cells: spans filled, header rows found, layout tables told from data."""

from collections.abc import Iterator

from lxml import etree

from documents.left_out import LeftOut
from documents.reading.html_elements import HEADINGS, classes_of, is_content, is_shown, tag_of, text_of
from documents.records import Table

MAX_CELLS = 200_000  # of a table; a span can claim millions
_MAX_COLUMNS = 1000
_CELLS, _NO_ROWS = ("td", "th"), ("", "caption", "colgroup", "col")
_Cell = tuple[str, bool]  # text, whether it is a header cell


def is_layout(table: etree._Element) -> bool:
    """Whether a table only places what stands in it.

    It holds headings, code or tables, or has a single row or column.
    """
    if table.get("role") in ("presentation", "none") or classes_of(table) & {"highlighttable", "layout"}:
        return True
    if next(table.iter(*HEADINGS, "pre"), None) is not None or sum(1 for _ in table.iter("table")) > 1:
        return True
    ignored = LeftOut()  # `read_table` tells
    widths = [sum(_span(cell, "colspan") for cell in row) for row, _ in _rows(table, ignored)]
    return len(widths) < 2 or max(widths) < 2


def read_table(element: etree._Element, caption: str, left_out: LeftOut) -> Table:
    """A table's cells; what a cell spans has its text in each place.

    Args:
        element: The table.
        caption: For a table that has none of its own.
        left_out: Gets what is left out of the cells, and a line if the table is too large.
    """
    rows: list[list[_Cell]] = []
    below: dict[int, tuple[int, _Cell]] = {}  # column -> rows still to fill, cell
    head = cells = 0
    own = element.find("caption")
    for row, in_head in _rows(element, left_out):
        line: list[_Cell] = []
        for cell in row:
            _fill(line, below)
            given = (text_of(cell, left_out), tag_of(cell) == "th")
            width = min(_span(cell, "colspan"), _MAX_COLUMNS - len(line))
            height = _span(cell, "rowspan")
            if height > 1:
                below |= {column: (height - 1, given) for column in range(len(line), len(line) + width)}
            line += [given] * width
        _fill(line, below)
        cells += len(line)
        if cells > MAX_CELLS:
            left_out.append(f"rows of a table after {MAX_CELLS:,} cells")
            break
        rows.append(line)
        head += in_head
    texts = tuple(tuple(text for text, _ in row) for row in rows)
    header_rows = head or _header_rows(rows)
    return Table(texts, min(header_rows, len(rows)), text_of(own, left_out) if own is not None else caption)


def _header_rows(rows: list[list[_Cell]]) -> int:
    """Rows at the top that hold header cells alone; a table of such rows has none."""
    for number, row in enumerate(rows):
        if not row or not all(is_header or not text for text, is_header in row) or not any(text for text, _ in row):
            return number
    return 0


def _fill(line: list[_Cell], below: dict[int, tuple[int, _Cell]]) -> None:
    """Put cells of rows above into the next places that they span."""
    while len(line) in below:
        left, cell = below.pop(len(line))
        if left > 1:
            below[len(line)] = (left - 1, cell)
        line.append(cell)


def _rows(
    table: etree._Element, left_out: LeftOut, in_head: bool = False
) -> Iterator[tuple[list[etree._Element], bool]]:
    """The cells of each row that is shown, and whether it is in the head; not those of tables within.

    Cells without a row are one. Text between cells is left out.
    """
    row: list[etree._Element] = []
    is_row = tag_of(table) == "tr"
    loose = [table.text or ""]
    for child in table:
        tag = tag_of(child)
        loose.append(child.tail or "")
        if row and not is_row and tag not in _CELLS:
            yield row, in_head
            row = []
        if tag in _NO_ROWS or not is_shown(child, left_out):
            continue
        if tag in _CELLS:
            row.append(child)
        elif tag in ("tr", "thead", "tbody", "tfoot", "form"):
            yield from _rows(child, left_out, in_head or tag == "thead")
        elif is_content(child, left_out):
            loose.append(text_of(child, left_out))
    if row or is_row:
        yield row, in_head
    left_out.text("text between the cells of tables left out", " ".join(loose))


def _span(cell: etree._Element, name: str) -> int:
    text = (cell.get(name) or "").strip()
    return min(max(int(text), 1), _MAX_COLUMNS) if text.isascii() and text.isdigit() and len(text) < 10 else 1
