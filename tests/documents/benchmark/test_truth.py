"""True structures read from sources and HTML editions: small samples of each kind, most in `truth/samples`."""

import gzip
import hashlib
import io
import zipfile
from pathlib import Path
from types import SimpleNamespace

import docx
import pytest

from documents.markdown_writing import to_markdown
from documents.records import Heading, Paragraph, Table
from tests.documents.benchmark.catalogue import catalogue, halves
from tests.documents.benchmark.truth.editions import READERS, true_document, truth_pages

SAMPLES = sorted(file for file in Path(__file__).parent.glob("truth/samples/*") if file.suffix != ".read")


def pages_of(sample: Path) -> list[tuple[str, bytes]]:
    """Pages of a sample; of HTML it has several, a blank line between them: the name of each, its content below."""
    if sample.suffix == ".odt":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.write(sample, "content.xml")
        return [("a.odt", buffer.getvalue())]
    parts = (part.partition(b"\n") for part in sample.read_bytes().split(b"\n\n"))
    return [(name.decode(), content) for name, _, content in parts] if sample.suffix == ".html" else []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_source_is_read_as_the_markdown_beside_it(sample: Path) -> None:
    document = READERS[sample.suffix[1:]](pages_of(sample) or [("", sample.read_bytes())], "x")
    assert to_markdown(document) == sample.with_suffix(".read").read_text(encoding="utf-8")


def test_a_word_file_is_read_by_its_styles_and_merged_cells() -> None:
    word, file = docx.Document(), io.BytesIO()
    word.add_paragraph("One", word.add_heading("Two", 2).style)
    table = word.add_table(2, 3)
    for cell, text in zip([cell for row in table.rows for cell in row.cells], "AB_ 12", strict=True):
        cell.text = text.strip("_ ")
    table.cell(0, 0).merge(table.cell(1, 0))
    table.cell(0, 1).merge(table.cell(0, 2)).add_paragraph("W")
    word.add_paragraph(" Text\t")
    word.save(file)
    blocks = READERS["docx"]([("", file.getvalue())], "x").blocks
    rows = (("A", "B W", "B W"), ("A", "1", "2"))
    assert blocks == (Heading("Two", 2), Heading("One", 2), Table(rows), Paragraph("Text"))


def test_the_list_has_its_halves_and_a_packed_truth_is_read(tmp_path: Path) -> None:
    everything = catalogue()
    assert [len(catalogue(half)) for half in ("tuning", "held-out", "new")] == [11, 11, 10]
    assert halves(everything) == {entry.id: entry.half for entry in everything if entry.half != "new"}
    assert len({entry.sha256 for entry in everything}) == len({entry.id for entry in everything}) == len(everything)
    content = rb"\begin{document}\section{One}\end{document}"
    sha256 = hashlib.sha256(content).hexdigest()
    entry = SimpleNamespace(id="p", truth=SimpleNamespace(kind="latex", path="a.tex.gz", files=1, sha256=sha256))
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.tex.gz").write_bytes(gzip.compress(content))
    assert true_document(entry, tmp_path).blocks == (Heading("One", 1),)


def test_pages_below_a_page_come_before_the_next_one(tmp_path: Path) -> None:
    pages = {
        "a": b'<link href="b.html" rel="next">a',
        "b": b'<link rel="next" href="d.html"><a href="c.html" accesskey="1">',  # c stands below b
        "c": b"c",
        "d": b"d",
    }
    for name, content in pages.items():
        (tmp_path / f"{name}.html").write_bytes(content)
    sha256 = hashlib.sha256(b"".join(pages.values())).hexdigest()
    truth = SimpleNamespace(kind="html", path="a.html", files=4, sha256=sha256)
    assert [path for path, _ in truth_pages(truth, tmp_path)] == ["a.html", "b.html", "c.html", "d.html"]
