"""True structures read from sources and HTML editions: small samples of each kind, most in `truth/samples`."""

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from documents.markdown_writing import to_markdown
from documents.records import Document, Heading, Paragraph, Table
from tests.documents.benchmark.catalogue import Truth, catalogue, halves
from tests.documents.benchmark.truth.editions import true_document, truth_pages
from tests.documents.benchmark.truth.groff import groff_document
from tests.documents.benchmark.truth.html_edition import html_document
from tests.documents.benchmark.truth.latex import latex_document
from tests.documents.benchmark.truth.open_document import odt_document
from tests.documents.benchmark.truth.plain_text import asciidoc_document, info_document, rst_document
from tests.documents.benchmark.truth.word import docx_document

SAMPLES = sorted(file for file in Path(__file__).parent.glob("truth/samples/*") if file.suffix != ".read")
READERS = {
    ".tex": latex_document, ".info": info_document, ".rst": rst_document, ".adoc": asciidoc_document,
    ".ms": groff_document, ".html": lambda source, name: html_document([("a.html", source.encode())], name),
}  # fmt: skip


def outline(document: Document) -> list[tuple[int, str]]:
    return [(block.level, block.text) for block in document.blocks if isinstance(block, Heading)]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_source_is_read_as_the_markdown_beside_it(sample: Path) -> None:
    document = READERS[sample.suffix](sample.read_text(encoding="utf-8"), "x")
    assert to_markdown(document) == sample.with_suffix(".read").read_text(encoding="utf-8")


def test_docbook_pages_get_their_levels_by_the_pages_above_them() -> None:
    up = '<link rel="up" href="{}"/>'
    titled = '<div class="titlepage"><{0} class="title">{1}</{0}></div>'.format
    pages = {
        "index": ("", titled("h1", "Book") + '<div class="titlepage"><h3 class="author">A. Uthor</h3></div>'),
        "ch01": (up.format("index.html"), titled("h1", "Chapter 1. Start") + '<h3 class="title">Note</h3>'),
        "ch01s02": (up.format("ch01.html"), titled("h2", "Second") + titled("h3", "Inner")),
    }
    generator = '<meta name="generator" content="DocBook XSL"/>'
    document = html_document(
        [(f"d/{name}.html", f"<head>{generator}{link}</head>{body}".encode()) for name, (link, body) in pages.items()],
        "x",
    )
    assert document.title == "Book"
    assert outline(document) == [(1, "Chapter 1. Start"), (2, "Second"), (3, "Inner")]
    assert Paragraph("Note") in document.blocks


def zipped(**files: str) -> bytes:
    """A zip file of XML files; `word__document` is word/document.xml."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name.replace('__', '/')}.xml", content)
    return buffer.getvalue()


def test_word_paragraphs_with_outline_levels_and_merged_cells() -> None:
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    down, across = cell("A", '<w:vMerge w:val="restart"/>'), cell("B", '<w:gridSpan w:val="2"/>')
    two = cell("2").replace("</w:p>", "</w:p><w:p/><w:p><w:r><w:t>W</w:t></w:r></w:p>")
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Titre1"/></w:pPr><w:r><w:t>One</w:t></w:r></w:p><w:p><w:r><w:t>Text</w:t></w:r>'
        "</w:p>"
        f"<w:tbl><w:tr>{down}{across}</w:tr><w:tr>{cell('', '<w:vMerge/>')}{cell('1')}{two}</w:tr></w:tbl>"
    )
    style = '<w:style w:styleId="Titre1"><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
    content = zipped(
        word__document=f"<w:document {namespace}><w:body>{body}</w:body></w:document>",
        word__styles=f"<w:styles {namespace}>{style}</w:styles>",
    )
    assert docx_document(content, "x").blocks == (
        Heading("One", 1),
        Paragraph("Text"),
        Table((("A", "B", "B"), ("A", "1", "2 W"))),
    )


def test_a_packed_truth_of_the_list_is_read(tmp_path: Path) -> None:
    content = rb"\begin{document}\section{One}\end{document}"
    truth = Truth("latex", "p", "1", "a.tex.gz", 1, hashlib.sha256(content).hexdigest())
    entry = replace(catalogue()[0], truth=truth)
    (tmp_path / entry.id).mkdir()
    (tmp_path / entry.id / "a.tex.gz").write_bytes(gzip.compress(content))
    assert outline(true_document(entry, tmp_path)) == [(1, "One")]


def test_the_list_has_its_halves() -> None:
    everything = catalogue()
    assert [len(catalogue(half)) for half in ("tuning", "held-out", "new")] == [11, 11, 10]
    assert halves(everything) == {entry.id: entry.half for entry in everything if entry.half != "new"}
    assert len({entry.sha256 for entry in everything}) == len({entry.id for entry in everything}) == len(everything)


def test_open_document_headings_tables_and_indexes() -> None:
    text, table = "urn:oasis:names:tc:opendocument:xmlns:text:1.0", "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
    row = "<b:table-row><b:table-cell><a:p>{}</a:p><a:p>x</a:p></b:table-cell>{}</b:table-row>"
    cell = "<b:table-cell><a:p>2</a:p></b:table-cell>"
    body = (
        '<a:table-of-content><a:p>One 3</a:p></a:table-of-content><a:h a:outline-level="1">One<a:line-break/>way</a:h>'
        "<a:list><a:list-item><a:p>Item<a:s/><a:span>of</a:span> it</a:p></a:list-item></a:list><a:p/>"
        f"<b:table>{row.format('1', cell)}{row.format('3', '')}</b:table><b:table>{row.format('4', '')}</b:table>"
    )
    content = zipped(content=f'<o xmlns:a="{text}" xmlns:b="{table}"><body><text>{body}</text></body></o>')
    assert odt_document(content, "x").blocks == (
        Heading("One way", 1),
        Paragraph("Item of it"),
        Table((("1 x", "2"), ("3 x", ""))),
        Paragraph("4 x"),
    )


def test_pages_below_a_page_come_before_the_next_one(tmp_path: Path) -> None:
    links = {"a": "b", "b": "d", "c": "", "d": ""}  # of the next page; c stands below b
    pages = {
        name: (f'<link href="{following}.html" rel="next">' * bool(following) + name).encode()
        for name, following in links.items()
    }
    pages["b"] = b'<link rel="next" href="d.html"><a href="c.html" accesskey="1">'
    for name, content in pages.items():
        (tmp_path / f"{name}.html").write_bytes(content)
    digest = hashlib.sha256(b"".join(pages[name] for name in "abcd")).hexdigest()
    truth = Truth("html", "p", "1", "a.html", 4, digest)
    assert [path for path, _ in truth_pages(truth, tmp_path)] == ["a.html", "b.html", "c.html", "d.html"]
