"""The world's library as its command writes it.

Existing files unchanged, repeatable, PDFs that say what the truth and the questions say.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import pypdfium2
import pytest

from common.errors import UserError
from common.gold_segments import is_relevant
from common.records import GoldSegment, Passage, Question
from datamodules.formats.reading import read_questions
from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world
from documents.manuals.asking import QUESTIONS
from documents.manuals.composing import compose
from documents.manuals.family import FAMILIES
from documents.manuals.products import draw_products
from documents.manuals.typesetting import typeset
from tests.datamodules.world.test_rephrasing import digest, pinned
from tests.helpers.small_world import SMALL

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world with a library, written by the command under another order of sets than here."""
    out = tmp_path_factory.mktemp("world") / "out"
    names = ("seed", "questions", "singles", "open_singles", "web_questions", "manuals", "rephrased", "msrag")
    sizes = [f"--{name}={getattr(SMALL, name)}" for name in names]
    command = [sys.executable, "-m", "datamodules.world", "--out", str(out), *sizes, "--library=true"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "7"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return out


@pytest.fixture(scope="module")
def questions(world: Path) -> dict[str, list[Question]]:
    return {split: list(read_questions("flashrag", str(world / f"library_{split}.jsonl"))) for split in QUESTIONS}


@pytest.fixture(scope="module")
def truths(world: Path) -> dict[str, dict]:
    return {f"{path.stem}.pdf": json.loads(path.read_text()) for path in (world / "library" / "truth").iterdir()}


@pytest.fixture(scope="module")
def pages(world: Path) -> dict[str, list[str]]:
    """The text of every page, as PDFium reads it."""
    texts = {}
    for path in (world / "library" / "documents").iterdir():
        with pypdfium2.PdfDocument(path) as document:
            texts[path.name] = [page.get_textpage().get_text_bounded() for page in document]
    return texts


def holds(document: str, text: str, *evidence: str) -> bool:
    return is_relevant(Passage("1", text, metadata={"document": document}), GoldSegment(document, evidence))


def cells(block: dict) -> list[str]:
    """The texts of a block that can be evidence: of a table each row, of a figure its caption."""
    if block["kind"] == "table":
        return [" | ".join(row) for row in block["rows"]]
    return [block["caption"] if block["kind"] == "image" else block["text"]]


def test_existing_files_keep_their_bytes(world: Path) -> None:
    assert {name: digest(world / name) for name in pinned("small")} == pinned("small")
    new = {"library", "library_test.jsonl", "library_validation.jsonl", "world.json"}
    assert {path.name for path in world.iterdir()} == {*pinned("small"), *new}


def test_a_world_without_a_library_needs_no_reportlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, datamodules.world.__main__; print('reportlab' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    monkeypatch.setitem(sys.modules, "reportlab", None)  # as if it were not installed
    with pytest.raises(UserError, match=r"needs reportlab, .*\[library\]"):
        write_world(WorldConfig(questions=50, library=True), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_same_manual_has_the_same_bytes(world: Path, truths: dict[str, dict]) -> None:
    for product in draw_products(FAMILIES, Random(f"{SMALL.seed}/library/products"))[3::8]:  # one of each family
        manual = compose(product)
        again = typeset(compose(product))
        assert again.pdf == typeset(manual).pdf == (world / "library" / "documents" / manual.file).read_bytes()
        assert json.loads(json.dumps(manual.truth())) == truths[manual.file]


def test_evidence_stands_on_its_page_and_once_under_its_headings(
    questions: dict[str, list[Question]], pages: dict[str, list[str]], truths: dict[str, dict]
) -> None:
    @cache
    def under(document: str, headings: tuple[str, ...]) -> list[str]:
        path: list[str] = []
        found = []
        for block in truths[document]["blocks"]:
            if block["kind"] == "heading":
                path[block["level"] - 1 :] = [block["text"]]
            elif tuple(path) == headings:
                found += cells(block)
        return found

    for gold in {gold for asked in questions.values() for one in asked for gold in one.gold.segments}:
        assert holds(gold.document, pages[gold.document][gold.page - 1], *gold.evidence), gold
        everything = [text for block in truths[gold.document]["blocks"] for text in cells(block)]
        assert sum(holds(gold.document, text, *gold.evidence) for text in everything) == 1, gold
        assert any(holds(gold.document, text, *gold.evidence) for text in under(gold.document, gold.headings)), gold


def test_the_pdf_says_what_the_truth_says(pages: dict[str, list[str]], truths: dict[str, dict]) -> None:
    assert pages.keys() == truths.keys()
    for name, truth in truths.items():
        assert len(pages[name]) == truth["pages"]
        assert 4 <= truth["pages"] <= 12
        paragraphs = []
        for block in truth["blocks"]:
            first = block["page"]
            spread = " ".join(pages[name][first - 1 : first + 1])  # a paragraph or a table may go on on the next page
            if block["kind"] == "table":
                assert all(holds(name, spread, *row) for row in block["rows"]), (name, block)
                assert holds(name, pages[name][first - 1], block["caption"], *block["rows"][0])
            elif block["kind"] == "paragraph":
                paragraphs.append(all(holds(name, spread, line) for line in block["text"].splitlines()))
            else:
                assert holds(name, pages[name][first - 1], *cells(block), *block.get("labels", ())), (name, block)
        assert sum(paragraphs) > 0.9 * len(paragraphs)  # but for those that are broken by a running header
