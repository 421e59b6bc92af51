"""True structures read from sources and HTML editions: small samples of each kind, most in `truth/samples`."""

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from documents.markdown_writing import to_markdown
from documents.records import Heading
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
    ".pages": lambda source, name: html_document(files(source), name),
    ".word": lambda source, name: docx_document(zipped(source), name),
    ".opendocument": lambda source, name: odt_document(zipped(source), name),
}  # fmt: skip


def files(source: str) -> list[tuple[str, bytes]]:
    """Files in one, a blank line between them: the name of each, and its content below."""
    parts = [part.partition("\n") for part in source.split("\n\n")]
    return [(name, content.encode()) for name, _, content in parts]


def zipped(source: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files(source):
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_source_is_read_as_the_markdown_beside_it(sample: Path) -> None:
    document = READERS[sample.suffix](sample.read_text(encoding="utf-8"), "x")
    assert to_markdown(document) == sample.with_suffix(".read").read_text(encoding="utf-8")


def test_a_packed_truth_of_the_list_is_read(tmp_path: Path) -> None:
    content = rb"\begin{document}\section{One}\end{document}"
    truth = Truth("latex", "p", "1", "a.tex.gz", 1, hashlib.sha256(content).hexdigest())
    entry = replace(catalogue()[0], truth=truth)
    (tmp_path / entry.id).mkdir()
    (tmp_path / entry.id / "a.tex.gz").write_bytes(gzip.compress(content))
    assert true_document(entry, tmp_path).blocks == (Heading("One", 1),)


def test_the_list_has_its_halves() -> None:
    everything = catalogue()
    assert [len(catalogue(half)) for half in ("tuning", "held-out", "new")] == [11, 11, 10]
    assert halves(everything) == {entry.id: entry.half for entry in everything if entry.half != "new"}
    assert len({entry.sha256 for entry in everything}) == len({entry.id for entry in everything}) == len(everything)


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
