"""The true structure of a document from its HTML edition, its OpenDocument text, or a Word file's own styles.

HTML is read as DocBook, Sphinx, Texinfo, LaTeX2HTML or MkDocs writes it.
"""

import io
import posixpath
import zipfile
from collections.abc import Sequence

import docx
from docx.oxml.ns import qn
from docx.table import Table as WordTable
from lxml import etree
from lxml import html as markup
from lxml.html.defs import block_tags

from documents.left_out import LeftOut
from documents.reading.html_tables import read_table
from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import TrueBlocks, equally_long, from_level_one

_SKIPPED = {  # navigation, tables of contents, indexes, signs that link to a heading
    "navheader", "navfooter", "toc", "toctree-wrapper", "list-of-tables", "list-of-figures", "list-of-examples",
    "related", "sphinxsidebar", "footer", "header", "navigation", "headerlink", "contents", "Contents_element", "index",
    "footnotes-heading", "summary-letter", "index-cp", "index-fn", "index-vr", "copiable-link",
}  # fmt: skip
_BLOCKS = {"article", "aside", "body", "figcaption", "figure", "footer", "header", "main", "section", *block_tags}
_BLOCKS -= {"del", "ins"}
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_AS_HTML = {"p": "p", "list-item": "li", "table": "table", "table-row": "tr", "table-cell": "td"}
_AS_HTML |= {"table-header-rows": "thead", "covered-table-cell": "td", "s": "br", "tab": "br", "line-break": "br"}
_INDEXES = ("table-of-content", "alphabetical-index", "illustration-index")


def _line(element: etree._Element) -> str:
    return " ".join("".join(element.itertext("*")).split())


def html_document(pages: Sequence[tuple[str, bytes]], name: str) -> Document:
    """Blocks of an HTML edition.

    Args:
        pages: Path and content of each page in order of reading; the first of several is the title page.
        name: The document's name.

    Returns:
        The document; the highest headings below its title have level 1.
    """
    title = ""
    blocks: list[Block] = []
    last_level: dict[str, int] = {}  # of the last heading of a page
    trees = {path: markup.document_fromstring(content) for path, content in pages}
    above = {path: _above(path, tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        reader = _Reader(tree)
        levels = [block.level for block in reader.blocks if isinstance(block, Heading)]
        if not title:
            title = next(filter(None, map(_line, tree.iter("h1"))), " ".join(tree.findtext(".//title", "").split()))
        if (
            tree.xpath("//div[@class='refentry']") and above[path] in last_level
        ):  # may stand in that page's last section
            depth = last_level[above[path]] + 1
        else:
            depth = _depth(path, above)
        shift = depth - levels[0] if levels and len(pages) > 1 else 0
        if levels:
            last_level[path] = levels[-1] + shift
        for block in reader.blocks:
            if not isinstance(block, Heading):
                blocks.append(block)
            elif block.text != title and block.level + shift > 0:
                blocks.append(Heading(block.text, block.level + shift))
    return Document(name, title, from_level_one(blocks))


def _above(path: str, tree: markup.HtmlElement) -> str:
    """The page that a page says is above it, or nothing."""
    links = tree.xpath("//link[translate(@rel, 'UP', 'up')='up']/@href")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), links[0].partition("#")[0])) if links else ""


def _depth(path: str, above: dict[str, str]) -> int:
    """How many pages stand above this one, by their links to the page above; 1 where there are no such links."""
    depth, at = 0, path
    while above.get(at) and depth < len(above):
        depth, at = depth + 1, above[at]
    return depth or int(path != next(iter(above)))


class _Reader(TrueBlocks):
    """Collects the blocks of a page."""

    def __init__(self, tree: markup.HtmlElement) -> None:
        super().__init__()
        # there the titles of notes are headings' elements, too
        self._docbook = "DocBook" in "".join(tree.xpath("//meta[@name='generator']/@content"))
        etree.strip_elements(tree.body, etree.Comment, "script", "style", "nav", "title", "img", with_tail=False)
        etree.strip_tags(tree.body, "sub", "sup")
        for element in [*tree.body.iter()]:
            if _SKIPPED & {*element.get("class", "").split()}:
                element.drop_tree()
            elif element.tag == "br":
                element.tail = f" {element.tail or ''}"
        self._read(tree.body)

    def _read(self, element: markup.HtmlElement) -> None:
        if element.tag in _BLOCKS:
            self.end()
        if element.tag in _HEADINGS:
            self._heading(element)
        elif rows := element.tag == "table" and _rows(element):
            self.blocks.append(Table(rows))
        elif element.tag == "pre":
            if code := "".join(element.itertext("*")).strip("\n"):
                self.blocks.append(Paragraph(code, code=True))
        else:
            self.text.append(element.text or "")
            for child in element:
                self._read(child)
                self.text.append(child.tail or "")
        if element.tag in _BLOCKS:
            self.end()

    def _heading(self, element: markup.HtmlElement) -> None:
        text, classes = _line(element), " ".join(element.xpath("ancestor::*/@class")).split()
        is_title = "title" in element.get("class", "").split() and {"titlepage", "bibliodiv"} & {*classes}
        if self._docbook and not is_title and "refentry" not in classes:
            self.text.append(text)
        elif text and "footnote" not in classes:
            deeper = sum(one in ("refsect1", "refsection", "refsynopsisdiv") for one in classes)
            self.blocks.append(Heading(text, int(element.tag[1]) + deeper))


def _rows(table: markup.HtmlElement) -> tuple[tuple[str, ...], ...]:
    """The rows of a table that does more than lay out."""
    if table.xpath(".//table | .//pre | ancestor::div[@class='calloutlist' or @class='revhistory']"):
        return ()
    rows = equally_long([row for row in read_table(table, "", LeftOut()).rows if any(row)])
    return rows if len(rows) > 1 and len(rows[0]) > 1 else ()


def odt_document(pages: Sequence[tuple[str, bytes]], name: str) -> Document:
    """Blocks of an OpenDocument text of a trusted package, read as HTML; its indexes are left out."""
    with zipfile.ZipFile(io.BytesIO(pages[0][1])) as archive:
        body = etree.fromstring(archive.read("content.xml")).find(".//{*}body/{*}text")
    etree.strip_elements(body, *(f"{{*}}{kind}" for kind in _INDEXES))
    for element in body.iter("*"):
        kind = etree.QName(element).localname
        level = next((value for key, value in element.items() if key.endswith("outline-level")), "1")
        element.tag = f"h{min(int(level), 6)}" if kind == "h" else _AS_HTML.get(kind, "span")
        if kind == "p" and next(element.iterancestors("p"), None) is not None:  # a note within
            element.tag, element.text = "span", f" {element.text or ''}"
    reader = _Reader(markup.document_fromstring(etree.tostring(body)))
    return Document(name, name, tuple(reader.blocks))


def docx_document(pages: Sequence[tuple[str, bytes]], name: str) -> Document:
    """Blocks of a Word file of a trusted package; a heading is a paragraph whose style has an outline level."""
    blocks: list[Block] = []
    for part in docx.Document(io.BytesIO(pages[0][1])).iter_inner_content():
        if isinstance(part, WordTable):
            blocks.append(
                Table(equally_long([[" ".join(cell.text.split()) for cell in row.cells] for row in part.rows]))
            )
        elif text := " ".join(part.text.split()):
            level = part.style.element.find(f".//{qn('w:outlineLvl')}") if part.style else None
            blocks.append(Paragraph(text) if level is None else Heading(text, int(level.get(qn("w:val"))) + 1))
    return Document(name, name, tuple(blocks))
