"""True structures read from sources and HTML editions: small samples of each kind."""

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from documents.records import Block, Document, Heading, Paragraph, Table
from tests.documents.benchmark.catalogue import Truth, catalogue, halves
from tests.documents.benchmark.truth.editions import true_document, truth_pages
from tests.documents.benchmark.truth.groff import groff_document
from tests.documents.benchmark.truth.html_edition import html_document
from tests.documents.benchmark.truth.latex import latex_document
from tests.documents.benchmark.truth.open_document import odt_document
from tests.documents.benchmark.truth.plain_text import asciidoc_document, info_document, rst_document
from tests.documents.benchmark.truth.word import docx_document


def outline(document: Document) -> list[tuple[int, str]]:
    return [(block.level, block.text) for block in document.blocks if isinstance(block, Heading)]


def latex(body: str, preamble: str = "") -> tuple[Block, ...]:
    return latex_document(f"{preamble}\\begin{{document}}{body}\\end{{document}}", "x").blocks


def test_latex_sections_with_their_levels() -> None:
    source = r"""
    \title[Short]{The \emph{Long} Title}
    \begin{document}
    \section[Short]{First \& last\label{a}\footnote{A note.}}
    % \section{Not this one}
    \subsection*{With \texttt{code}}
    \begin{verbatim}
    \section{Neither this}  % kept
    \end{verbatim}
    \subsubsection {Deep}
    \paragraph{Run-in.} Text.
    \section{\LaTeX\ and $\alpha^2$}
    \end{document}"""
    document = latex_document(source, "x")
    assert document.title == "The Long Title"
    assert outline(document) == [(1, "First & last"), (2, "With code"), (3, "Deep"), (1, "LaTeX and \u03b12")]
    assert Paragraph("A note.") in document.blocks
    assert Paragraph("    \\section{Neither this}  % kept\n    ".rstrip(" \n"), code=True) in [
        replace(block, text=block.text.rstrip(" \n")) for block in document.blocks if isinstance(block, Paragraph)
    ]


def test_latex_tables_with_spans_rules_and_footnotes() -> None:
    (table, note) = latex(
        r"""\begin{tabular*}{\textwidth}{@{}l|p{3cm}r@{}}
        \toprule & \multicolumn{2}{c}{\textbf{Both}\footnote{of them}} \\ \cmidrule{2-3}
        \verb|a&b| & 1 \& 2 & $3\times 4$ \\[2pt] \hline
        last & {a \\ b} & \\ \bottomrule
        \end{tabular*}"""
    )
    assert table == Table((("", "Both", "Both"), ("a&b", "1 & 2", "3\u00d74"), ("last", "a b", "")))
    assert note == Paragraph("of them")


def test_latex_macros_accents_and_commands_without_text() -> None:
    preamble = r"\newcommand{\kit}[2][old]{#2 (#1)} \def\unit#1{#1~W}"
    assert latex(
        r"The \kit{X1} and \kit[new]{X2} of \unit{3} in Malm\"o, Fran\c{c}ois \cite[p.~3]{key}.", preamble
    ) == (Paragraph("The X1 (old) and X2 (new) of 3 W in Malmö, François ."),)
    assert latex(r"See \href{http://x}{here}, \verb+\ref{a}+ -- ``so''. \vspace{2em} 5\,\% \[E = mc^2\]") == (
        Paragraph("See here, \\ref{a} \u2013 “so”. 5 %"),
    )


def test_latex_quotes_of_commands_are_text() -> None:
    assert latex(r"before \verb|\end{document}| \section{\cmd\maketitle} {\char'134}a \char 65") == (
        Paragraph(r"before \end{document}"),
        Heading(r"\maketitle", 1),
        Paragraph(r"\a A"),
    )


@pytest.mark.parametrize(
    "source", ["\\verb", "\\verb|a", "{", "\\begin{tabular}{l} a & b", "$a", "\\[", "\\section{", "\\def\\a{\\a}\\a"]
)
def test_broken_latex_ends(source: str) -> None:
    latex_document(source, "x")


def page(body: str, head: str = "") -> bytes:
    return f"<html><head><title>T</title>{head}</head><body>{body}</body></html>".encode()


def test_sphinx_and_mkdocs_pages() -> None:
    body = """<div class="related"><h3>Navigation</h3></div>
    <div class="body"><h1>Manual</h1><h2><span class="section-number">1. </span>One<a class="headerlink" \
href="#">¶</a></h2>
    <div class="toctree-wrapper"><p>1. One</p></div><p>Text <b>bold</b>.</p><ul><li>item</li></ul><h3>Two</h3><pre>a
  b</pre></div><div class="footer"><p>by Sphinx</p></div>"""
    document = html_document([("a.html", page(body))], "x")
    assert document.title == "Manual"
    assert document.blocks == (
        Heading("1. One", 1), Paragraph("Text bold."), Paragraph("item"), Heading("Two", 2), Paragraph("a\n  b",
        code=True)
    )  # fmt: skip


def test_docbook_pages_get_their_levels_by_the_pages_above_them() -> None:
    def docbook(body: str, up: str = "") -> bytes:
        return page(body, f'<meta name="generator" content="DocBook XSL"/><link rel="up" href="{up}"/>' if up else
                    '<meta name="generator" content="DocBook XSL"/>')  # fmt: skip

    def titled(tag: str, text: str) -> str:
        return f'<div class="titlepage"><{tag} class="title">{text}</{tag}></div>'

    pages = [
        ("d/index.html", docbook(titled("h1",
        "Book") + '<div class="titlepage"><h3 class="author">A. Uthor</h3></div>')), ("d/ch01.html",
        docbook(titled("h1", "Chapter 1. Start") + '<div class="note"><h3 class="title">Note</h3></div>',
        "index.html")), ("d/ch01s02.html", docbook(titled("h2", "Second") + titled("h3", "Inner"), "ch01.html"))
    ]  # fmt: skip
    document = html_document(pages, "x")
    assert document.title == "Book"
    assert outline(document) == [(1, "Chapter 1. Start"), (2, "Second"), (3, "Inner")]
    assert Paragraph("Note") in document.blocks


def test_html_tables_with_spans_and_tables_that_only_lay_out() -> None:
    body = """<table><tr><th rowspan="2">A</th><th colspan="2">B</th></tr><tr><td>1</td><td>2</td></tr></table>
    <table><tr><td><pre>code</pre></td></tr></table>"""
    assert html_document([("a.html", page(body))], "x").blocks == (
        Table((("A", "B", "B"), ("A", "1", "2"))),
        Paragraph("code", code=True),
    )


def test_info_nodes() -> None:
    source = """This is x.info
\x1f
File: x.info,  Node: Top

Manual
******

Hello.

* Menu:

* One::     the first

\x1f
File: x.info,  Node: One

1 One
*****

Text
here.

1.1 Two
=======

a table
  --- ---
\x1f
Tag Table:
Node: Top\x7f10
"""
    document = info_document(source, "x")
    assert document.title == "Manual"
    assert document.blocks == (
        Paragraph("Hello."), Heading("1 One", 1), Paragraph("Text here."), Heading("1.1 Two", 2),
        Paragraph("a table --- ---")
    )  # fmt: skip


def test_rst_marks_get_levels_in_the_order_of_their_appearance() -> None:
    source = """=====
 Doc
=====

One
===

Text with ``code`` and `a link <http://x>`_.

.. a comment
   of two lines

Two
---

Deep
~~~~

Again
-----

Last
====
"""
    document = rst_document(source, "x")
    assert document.title == "Doc"
    assert outline(document) == [(1, "One"), (2, "Two"), (3, "Deep"), (2, "Again"), (1, "Last")]
    assert Paragraph("Text with code and a link.") in document.blocks
    assert "comment" not in str(document.blocks)


def test_asciidoc_headings_and_blocks_of_code() -> None:
    source = """= Title

[[one]]
== One

Text.

=== Two

-------
== not this
-------

=== Three
"""
    document = asciidoc_document(source, "x")
    assert document.title == "Title"
    assert outline(document) == [(1, "One"), (2, "Two"), (2, "Three")]
    assert Paragraph("== not this", code=True) in document.blocks


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
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {namespace}><w:body>{body}</w:body></w:document>")
        style = '<w:style w:styleId="Titre1"><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
        archive.writestr("word/styles.xml", f"<w:styles {namespace}>{style}</w:styles>")
    assert docx_document(buffer.getvalue(), "x").blocks == (
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
    assert {half: len(catalogue(half)) for half in ("tuning", "held-out", "new")} == {
        "tuning": 11,
        "held-out": 11,
        "new": 10,
    }
    assert halves(everything) == {entry.id: entry.half for entry in everything if entry.half != "new"}
    assert len({entry.sha256 for entry in everything}) == len({entry.id for entry in everything}) == len(everything)


def test_groff_headings_paragraphs_and_what_is_no_text() -> None:
    source = (
        '.\\" not printed\n.de X\nhidden\n..\n.TL\nThe Title\n.AU\nA. N. Other\n.NH\nUse of\n\\fBcvs\\fP\\**\n'
        ".FS\nA note.\n.FE\n"
        '.PP\nIn\n.SM\nRCS\\c\n.LG\n, a \\*Qlock\\*U \\(em see \\s-2B\\s+2.\n.NH 2\nParts\n.IP "two words" 5\nText.\n'
        ".DS B\n.PS\nline from 1 to 2\n.PE\n.DE\n.DS\nmake\n  all\n.DE\n.TS\nbox center;\nl l.\nA\tB\n.TE\n.SH\nEnd\n"
    )
    document = groff_document(source, "x")
    assert document.title == "The Title"
    assert document.blocks == (
        Paragraph("A. N. Other"),
        Heading("Use of cvs", 1),
        Paragraph("A note."),
        Paragraph("In RCS , a lock - see B."),
        Heading("Parts", 2),
        Paragraph("two words Text."),
        Paragraph("make\n  all", code=True),
        Paragraph("A B"),
        Heading("End", 1),
    )


def test_open_document_headings_tables_and_indexes() -> None:
    text, table = "urn:oasis:names:tc:opendocument:xmlns:text:1.0", "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
    row = "<b:table-row><b:table-cell><a:p>{}</a:p><a:p>x</a:p></b:table-cell>{}</b:table-row>"
    cell = "<b:table-cell><a:p>2</a:p></b:table-cell>"
    body = (
        '<a:table-of-content><a:p>One 3</a:p></a:table-of-content><a:h a:outline-level="1">One<a:line-break/>way</a:h>'
        "<a:list><a:list-item><a:p>Item<a:s/><a:span>of</a:span> it</a:p></a:list-item></a:list><a:p/>"
        f"<b:table>{row.format('1', cell)}{row.format('3', '')}</b:table><b:table>{row.format('4', '')}</b:table>"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content.xml", f'<o xmlns:a="{text}" xmlns:b="{table}"><body><text>{body}</text></body></o>')
    assert odt_document(buffer.getvalue(), "x").blocks == (
        Heading("One way", 1),
        Paragraph("Item of it"),
        Table((("1 x", "2"), ("3 x", ""))),
        Paragraph("4 x"),
    )


def test_pages_below_a_page_come_before_the_next_one(tmp_path: Path) -> None:
    links = {"a": "b", "b": "d", "c": "", "d": ""}  # of the next page; c stands below b
    pages = {
        name: f'<link rel="next" href="{following}.html"><a href="c.html" accesskey="1">'.encode()
        if name == "b"
        else f'<link href="{following}.html" rel="next">'.encode() * bool(following) + name.encode()
        for name, following in links.items()
    }
    for name, content in pages.items():
        (tmp_path / f"{name}.html").write_bytes(content)
    digest = hashlib.sha256(b"".join(pages[name] for name in "abcd")).hexdigest()
    truth = Truth("html", "p", "1", "a.html", 4, digest)
    assert [path for path, _ in truth_pages(truth, tmp_path)] == ["a.html", "b.html", "c.html", "d.html"]
