"""The true structure of an OpenDocument text: headings with their outline levels, tables, paragraphs."""

import io
import re
import zipfile
from collections.abc import Iterator

from lxml import etree

from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import equally_long

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_INDEXES = [f"{_TEXT}{kind}" for kind in ("table-of-content", "alphabetical-index", "illustration-index")]


def odt_document(content: bytes, name: str) -> Document:
    """Blocks of an OpenDocument text of a trusted package; its indexes are left out."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = etree.fromstring(archive.read("content.xml")).find(".//{*}body/{*}text")
    return Document(name, name, tuple(_blocks(body)))


def _blocks(parent: etree._Element) -> Iterator[Block]:
    for element in parent:
        text = _line(element)
        if element.tag in _INDEXES or not text:
            continue
        if element.tag == f"{_TABLE}table" and len((rows := _rows(element))[0]) > 1:  # one column only lays out
            yield Table(rows)
        elif element.tag == f"{_TABLE}table":
            yield from (Paragraph(row[0]) for row in rows if row[0])
        elif element.tag == f"{_TEXT}h":
            yield Heading(text, min(int(element.get(f"{_TEXT}outline-level", 1)), 6))
        elif element.tag == f"{_TEXT}p":
            yield Paragraph(text)
        else:  # a list or section
            yield from _blocks(element)


def _line(element: etree._Element) -> str:
    """Text with a blank for each tab, break and paragraph inside."""
    parts = []
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            parts += [" "] * (part.tag in {f"{_TEXT}{kind}" for kind in ("s", "tab", "line-break", "p")})
            parts.append(part.text or "")
        elif part is not element:
            parts.append(part.tail or "")
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def _rows(table: etree._Element) -> tuple[tuple[str, ...], ...]:
    cells = (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")
    return equally_long([[*map(_line, row.iterchildren(cells))] for row in table.iter(f"{_TABLE}table-row")])
