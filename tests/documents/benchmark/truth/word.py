"""The true structure of a Word document from its own XML: paragraph styles of outline levels, tables."""

import io
import re
import zipfile

from lxml import etree

from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import equally_long

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def docx_document(content: bytes, name: str) -> Document:
    """Blocks of a Word file of a trusted package; a heading is a paragraph whose style has an outline level."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = etree.fromstring(archive.read("word/document.xml")).find(f"{_W}body")
        styles = etree.fromstring(archive.read("word/styles.xml"))
    levels = {
        style.get(f"{_W}styleId"): int(level.get(f"{_W}val")) + 1
        for style in styles.iter(f"{_W}style")
        if (level := style.find(f"{_W}pPr/{_W}outlineLvl")) is not None
    }
    blocks: list[Block] = []
    for element in body:
        if element.tag == f"{_W}tbl":
            blocks.append(Table(_rows(element)))
        elif text := _text(element):
            style = element.find(f"{_W}pPr/{_W}pStyle")
            level = levels.get(style.get(f"{_W}val")) if style is not None else None
            blocks.append(Heading(text, level) if level else Paragraph(text))
    return Document(name, name, tuple(blocks))


def _text(element: etree._Element) -> str:
    return re.sub(r"\s+", " ", "".join(part.text or "" for part in element.iter(f"{_W}t"))).strip()


def _rows(table: etree._Element) -> tuple[tuple[str, ...], ...]:
    rows: list[list[str]] = []
    for row in table.findall(f"{_W}tr"):
        cells: list[str] = []
        for cell in row.findall(f"{_W}tc"):
            span = cell.find(f"{_W}tcPr/{_W}gridSpan")
            merge = cell.find(f"{_W}tcPr/{_W}vMerge")
            text = " ".join(filter(None, map(_text, cell.iter(f"{_W}p"))))
            if merge is not None and merge.get(f"{_W}val") != "restart" and rows:  # goes on from the cell above
                text = rows[-1][len(cells)] if len(cells) < len(rows[-1]) else ""
            cells += [text] * (int(span.get(f"{_W}val")) if span is not None else 1)
        rows.append(cells)
    return equally_long(rows)
