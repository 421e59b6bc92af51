"""The comparison of engines as a user runs it, engines of others in their own process, and fetching of packages."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ArtifactError
from documents.records import Document, Paragraph
from tests.documents.benchmark import __main__ as comparison
from tests.documents.benchmark import fetch
from tests.documents.benchmark.catalogue import CatalogueEntry, Truth, catalogue
from tests.documents.benchmark.reading import ReadDocument, read_by
from tests.helpers.pdf_pages import pdf, text_page

TRUE = (
    b"<html><title>T</title><body><h1>Pump</h1><h2>Safety</h2><p>Mind the gap.</p>"
    b"<h2>Power</h2><p>300 W.</p></body></html>"
)
READ = b"# Pump\n\n## 1 Safety\n\nMind the gap.\n\n## 2 Power\n\n300 W.\n"


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one Markdown file of the list and its HTML edition; the list has nothing else."""
    truth = Truth("html", "pump-doc", "1", "pump.html", 1, hashlib.sha256(TRUE).hexdigest())
    entry = replace(_entry("markdown"), id="pump", half="tuning", sha256=hashlib.sha256(READ).hexdigest(), truth=truth)
    (tmp_path / "truth/pump").mkdir(parents=True)
    (tmp_path / "truth/pump/pump.html").write_bytes(TRUE)
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning/pump.md").write_bytes(READ)
    for module in (comparison, fetch):
        monkeypatch.setattr(module, "catalogue", lambda *_: [entry])
    return tmp_path


def _entry(format_: str) -> CatalogueEntry:
    return next(entry for entry in catalogue() if entry.format == format_)


def test_the_tables_hold_each_engines_scores(documents: Path) -> None:
    out = documents / "result.md"
    comparison.main(["--documents", str(documents), "--engines", "ours", "edgeparse", "--out", str(out)])
    lines = out.read_text().splitlines()
    assert "## Means over 1 other formats" in lines
    _, row = [line for line in lines if line.startswith("| ours |")]
    # Headings are perfect whatever their numbers; of 9 words read, 1 and 2 are not true ones, and the title stands for
    # nobody.
    cells = [cell.strip() for cell in row.split("|")[2:-2]]
    assert cells == ["1.000"] * 6 + ["-", "0", "0.000", "0.222", "0.167"]  # a number stands between one of 6 pairs
    assert not any(line.startswith("| edgeparse") for line in lines)  # it reads PDFs only


def test_means_have_intervals_and_differences_to_the_first_engine() -> None:
    entries = [replace(_entry("pdf"), id=id_, pages=2) for id_ in "ab"]
    truth = Document("m", "Manual", (Paragraph("Text."),))

    def row(entry: CatalogueEntry, mhs: float) -> comparison.Row:
        made = comparison._row(entry, truth, ReadDocument(truth, 1.0))
        assert isinstance(made, dict)
        assert "mhs" not in made  # a truth without headings
        return made | {"mhs": mhs}

    of_engine = {"x": (0.5, 0.9), "y": (0.4, 0.6)}
    rows = {
        engine: {e.id: row(e, mhs) for e, mhs in zip(entries, values, strict=True)}
        for engine, values in of_engine.items()
    }
    rows["z"] = {"a": comparison._row(entries[0], truth, ReadDocument(None, None, "no Java"))}
    lines = comparison._mean_table("PDFs", entries, rows).splitlines()[4:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells.pop()[:3] == ["z", "did not run: no Java", ""]
    assert [(line[0], line[4], line[7], line[-2], line[-1]) for line in cells] == [
        ("x", "0.700 [0.500, 0.900]", "-", "0.500", "-"),
        ("y", "0.500 [0.400, 0.600]", "-", "0.500", "-0.200 [-0.300, -0.100]"),
    ]


def test_an_engine_of_others_reads_a_pdf_in_its_own_process(tmp_path: Path) -> None:
    file = tmp_path / "x.pdf"
    file.write_bytes(pdf(text_page([(72, 100, "Mind the gap.", "Helvetica", 12)])))
    entry = replace(_entry("pdf"), id="x")
    result = read_by("pdfium", entry, file, sys.executable, tmp_path / "work")
    assert result.document is not None
    assert "Mind the gap." in str(result.document.blocks)
    report = json.loads((tmp_path / "work/pdfium/x.json").read_text())
    assert report["seconds"] == result.seconds > 0
    file.unlink()  # the second time nothing runs
    assert read_by("pdfium", entry, file, "", tmp_path / "work") == result


def test_a_package_with_another_file_is_refused(tmp_path: Path) -> None:
    entry = _entry("docx")
    (tmp_path / entry.path).parent.mkdir(parents=True)
    (tmp_path / entry.path).write_bytes(b"another file")
    with pytest.raises(ArtifactError, match=r"example\.docx of r-cran-officer \S+ has sha256 \w+, not"):
        fetch._lay(entry, tmp_path, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
