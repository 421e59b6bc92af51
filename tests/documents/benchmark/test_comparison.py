"""The comparison of engines as a user runs it, engines of others in their own process, and fetching of packages."""

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import ArtifactError
from tests.documents.benchmark import __main__ as comparison
from tests.documents.benchmark import fetch
from tests.documents.benchmark.catalogue import catalogue
from tests.documents.benchmark.reading import ReadDocument, read_by
from tests.helpers.pdf_pages import pdf, text_page

TRUE = (
    b"<html><title>T</title><body><h1>Pump</h1><h2>Safety</h2><p>Mind the gap.</p>"
    b"<h2>Power</h2><p>300 W.</p></body></html>"
)
READ = b"# Pump\n\n## 1 Safety\n\nMind the gap.\n\n## 2 Power\n\n300 W.\n"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def entry(**given: Any) -> Any:
    truth = SimpleNamespace(kind="html", path="pump.html", files=1, sha256=hashlib.sha256(TRUE).hexdigest())
    values = {"id": "pump", "half": "tuning", "format": "markdown", "file": "pump.md", "pages": None, "contains": ()}
    return SimpleNamespace(**{**values, "truth": truth, **given})


def test_the_tables_hold_each_engines_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, content in (("truth/pump/pump.html", TRUE), ("tuning/pump.md", READ)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(content)
    monkeypatch.setattr(comparison, "catalogue", lambda half: [entry()])
    out = tmp_path / "result.md"
    comparison.main(["--documents", str(tmp_path), "--engines", "ours", "edgeparse", "--out", str(out)])
    lines = out.read_text().splitlines()
    assert "## Means over 1 other formats" in lines
    _, row = [line for line in lines if line.startswith("| ours |")]
    # Headings are perfect whatever their numbers; of 9 words read, 1 and 2 are not true ones, and the title stands for
    # nobody.
    assert cells(row)[1:-1] == ["1.000"] * 6 + ["-", "0", "0.000", "0.222", "0.167"]  # a number between one of 6 pairs
    assert not any(line.startswith("| edgeparse") for line in lines)  # it reads PDFs only


def test_means_have_intervals_and_differences_to_the_first_engine() -> None:
    entries = [entry(id=id_, pages=2) for id_ in "ab"]
    rows: dict[str, dict[str, comparison.Row]] = {
        "x": {"a": {"mhs": 0.5, "seconds": 0.5}, "b": {"mhs": 0.9, "seconds": 0.5}},
        "y": {"a": {"mhs": 0.4, "seconds": 0.5}, "b": {"mhs": 0.6, "seconds": 0.5}},
        "z": {"a": comparison._row(entries[0], None, ReadDocument(None, 0, "no Java"))},
    }
    *found, failed = map(cells, comparison._mean_table(entries, rows).splitlines()[2:])
    assert failed[:3] == ["z", "did not run: no Java", ""]
    assert [(line[0], line[4], line[7], line[-2], line[-1]) for line in found] == [
        ("x", "0.700 [0.500, 0.900]", "-", "0.500", "-"),
        ("y", "0.500 [0.400, 0.600]", "-", "0.500", "-0.200 [-0.300, -0.100]"),
    ]


def test_an_engine_of_others_reads_a_pdf_in_its_own_process(tmp_path: Path) -> None:
    file, one = tmp_path / "x.pdf", entry(id="x", format="pdf", file="x.pdf")
    file.write_bytes(pdf(text_page([(72, 100, "Mind the gap.", "Helvetica", 12)])))
    result = read_by("pdfium", one, file, sys.executable, tmp_path / "work")
    assert "Mind the gap." in str(result.document)
    assert json.loads((tmp_path / "work/pdfium/x.json").read_text())["seconds"] == result.seconds > 0
    file.unlink()  # the second time nothing runs
    assert read_by("pdfium", one, file, "", tmp_path / "work") == result


def test_a_package_with_another_file_is_refused(tmp_path: Path) -> None:
    listed = next(each for each in catalogue() if each.format == "docx")
    (tmp_path / listed.path).parent.mkdir(parents=True)
    (tmp_path / listed.path).write_bytes(b"another file")
    with pytest.raises(ArtifactError, match=r"example\.docx of r-cran-officer \S+ has sha256 \w+, not"):
        fetch._lay(listed, tmp_path, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
