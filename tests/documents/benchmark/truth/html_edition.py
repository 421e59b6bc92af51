"""The true structure of a document from its HTML edition, as DocBook, Sphinx, Texinfo, LaTeX2HTML or MkDocs writes."""

import posixpath
import re
from collections.abc import Sequence
from itertools import product

from lxml import html as markup

from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.truth.blocks import TrueBlocks, from_level_one

_SKIPPED_TAGS = ("script", "style", "head", "nav", "title")
_SKIPPED_CLASSES = {  # navigation, tables of contents, indexes, signs that link to a heading
    "navheader", "navfooter", "toc", "toctree-wrapper", "list-of-tables", "list-of-figures", "list-of-examples",
    "related", "sphinxsidebar", "footer", "header", "navigation", "headerlink", "contents", "Contents_element", "index",
    "footnotes-heading", "summary-letter", "index-cp", "index-fn", "index-vr", "copiable-link",
}  # fmt: skip
_BLOCKS = (
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "ol", "p", "pre", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
)  # fmt: skip
_HEADING = re.compile(r"h([1-6])")


def html_document(pages: Sequence[tuple[str, bytes]], name: str) -> Document:
    """Blocks of an HTML edition.

    Args:
        pages: Path and content of each page in order of reading; the first of several is the title page.
        name: The document's name.

    Returns:
        The document; the highest headings below its title have level 1.
    """
    trees = {path: markup.document_fromstring(content) for path, content in pages}
    first = next(iter(trees.values()))
    title = _title(first)
    blocks: list[Block] = []
    last_level: dict[str, int] = {}  # of the last heading of a page
    for path, tree in trees.items():
        above = _above(path, tree)
        depth = _depth(path, trees)
        if tree.xpath("//div[@class='refentry']") and above in last_level:  # may stand in that page's last section
            depth = last_level[above] + 1
        reader = _Reader(docbook="DocBook" in "".join(tree.xpath("//meta[@name='generator']/@content")))
        reader.read(tree.body)
        own = reader.blocks
        levels = [block.level for block in own if isinstance(block, Heading)]
        shift = depth - levels[0] if levels and len(pages) > 1 else 0
        if levels:
            last_level[path] = levels[-1] + shift
        for block in own:
            if not isinstance(block, Heading):
                blocks.append(block)
            elif block.text != title and block.level + shift > 0:
                blocks.append(Heading(block.text, block.level + shift))
    return Document(name, title, from_level_one(blocks))


def _title(tree: markup.HtmlElement) -> str:
    headings = [line for heading in tree.iter("h1") if (line := _line(heading))]
    return headings[0] if headings else " ".join(tree.findtext(".//title", "").split())


def _depth(path: str, trees: dict[str, markup.HtmlElement]) -> int:
    """How many pages stand above this one, by their links to the page above; 1 where there are no such links."""
    depth, seen = 0, set()
    while path not in seen and path in trees:
        seen.add(path)
        above = _above(path, trees[path])
        if not above:
            return depth if depth or path == next(iter(trees)) else 1
        path = above
        depth += 1
    return depth


def _above(path: str, tree: markup.HtmlElement) -> str:
    """The page that a page says is above it, or nothing."""
    links = tree.xpath("//link[translate(@rel, 'UP', 'up')='up']/@href")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), links[0].partition("#")[0])) if links else ""


def _line(element: markup.HtmlElement) -> str:
    """An element's text without signs that link to it, as one line."""
    return " ".join("".join(_texts(element)).split())


def _texts(element: markup.HtmlElement) -> list[str]:
    if not isinstance(element.tag, str) or _skipped(element):
        return []
    parts = [element.text or ""]
    for child in element:
        separate = " " if child.tag == "br" else ""
        parts += [*_texts(child), separate, child.tail or ""]
    return parts


def _skipped(element: markup.HtmlElement) -> bool:
    return element.tag in _SKIPPED_TAGS or bool(_SKIPPED_CLASSES & set((element.get("class") or "").split()))


class _Reader(TrueBlocks):
    """Collects the blocks of a page.

    Args:
        docbook: Whether DocBook's stylesheets wrote it: there the titles of notes are headings' elements, too.
    """

    def __init__(self, docbook: bool) -> None:
        super().__init__()
        self._docbook = docbook

    def read(self, element: markup.HtmlElement) -> None:
        """Add an element's blocks."""
        if not isinstance(element.tag, str) or _skipped(element):
            return
        if element.tag in _BLOCKS:
            self.end()
        if heading := _HEADING.fullmatch(element.tag):
            self._heading(element, int(heading[1]))
        elif element.tag == "table":
            self._table(element)
        elif element.tag == "pre":
            if code := "".join(_texts(element)).strip("\n"):
                self.blocks.append(Paragraph(code, code=True))
        else:
            self.text.append(" " if element.tag == "br" else element.text or "")
            for child in element:
                self.read(child)
                self.text.append(child.tail or "")
        if element.tag in _BLOCKS:
            self.end()

    def _heading(self, element: markup.HtmlElement, level: int) -> None:
        text = _line(element)
        above = [set((ancestor.get("class") or "").split()) for ancestor in element.iterancestors()]
        in_reference = any("refentry" in classes for classes in above)
        is_title = "title" in (element.get("class") or "").split() and any(
            classes & {"titlepage", "bibliodiv"} for classes in above
        )
        if self._docbook and not is_title and not in_reference:
            self.text.append(text)
        elif text and not any("footnote" in classes for classes in above):
            deeper = sum(bool(classes & {"refsect1", "refsection", "refsynopsisdiv"}) for classes in above)
            self.blocks.append(Heading(text, level + deeper))

    def _table(self, element: markup.HtmlElement) -> None:
        rows = grid(element)
        if (
            len(rows) > 1
            and len(rows[0]) > 1
            and not element.xpath(".//table | .//pre | ancestor::div[@class='calloutlist' or @class='revhistory']")
        ):
            self.blocks.append(Table(rows))
            return
        for cell in element.iter("td", "th", "caption"):  # a table that only lays out: its cells are text
            if next(cell.iterancestors("table")) is element:
                self.read(cell)


def grid(table: markup.HtmlElement) -> tuple[tuple[str, ...], ...]:
    """A table's rows, all equally long; a cell that spans several stands in each of them."""
    cells: dict[tuple[int, int], str] = {}
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    for y, row in enumerate(rows):
        x = 0
        for cell in row.iterchildren("td", "th"):
            while (y, x) in cells:
                x += 1
            down, right = range(y, y + _span(cell, "rowspan")), range(x, x + _span(cell, "colspan"))
            cells |= dict.fromkeys(product(down, right), _line(cell))
    width = max((x for _, x in cells), default=-1) + 1
    filled = [tuple(cells.get((y, x), "") for x in range(width)) for y in range(len(rows))]
    return tuple(row for row in filled if any(row))


def _span(cell: markup.HtmlElement, name: str) -> int:
    value = cell.get(name) or "1"
    return min(max(int(value), 1), 100) if value.isdecimal() else 1
