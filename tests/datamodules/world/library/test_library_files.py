"""The world's library as its command writes it.

Existing files unchanged, repeatable, PDFs that say what the truth and the questions say.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pypdfium2
import pytest

from common.errors import UserError
from common.gold_segments import is_relevant
from common.records import GoldSegment, Passage, Question
from datamodules.formats.reading import read_questions
from datamodules.world.library import writing
from datamodules.world.library.asking import QUESTIONS
from datamodules.world.library.composing import compose
from datamodules.world.library.families import FAMILIES
from datamodules.world.library.manual import Manual
from datamodules.world.library.products import draw_products
from datamodules.world.library.typesetting import typeset
from datamodules.world.world import WorldConfig
from datamodules.world.writing import write_world
from tests.datamodules.world.test_rephrasing import digest, pinned
from tests.helpers.small_world import SMALL

ROOT = Path(__file__).parents[4]
KINDS = ("across", "calculation", "choice", "comparison", "descriptive", "image", "table")


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
def manuals() -> list[Manual]:
    """One manual of each family, typeset here."""
    products = draw_products(FAMILIES, Random(f"{SMALL.seed}/library/products"))
    made = [compose(product) for product in products[3::8]]
    for manual in made:
        typeset(manual)
    return made


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


def test_the_record_names_what_was_written(world: Path, truths: dict[str, dict]) -> None:
    record = json.loads((world / "world.json").read_text())
    assert record["library"]["manuals"] == len(truths) == 48
    assert record["library"]["pages"] == sum(truth["pages"] for truth in truths.values())
    for split, count in QUESTIONS.items():
        assert record["library"]["questions"][split] == dict.fromkeys(KINDS, count)
    assert "library/documents/norvik-cp-210.pdf" in record["sha256"]


def test_a_world_without_a_library_needs_no_reportlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, datamodules.world.__main__; print('reportlab' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    monkeypatch.setattr(writing, "PACKAGE", "no_such_package")
    with pytest.raises(
        UserError, match=r"not installed: pip install 'lightning-rag\[library\]', or leave out --library"
    ):
        write_world(WorldConfig(questions=50, library=True), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_same_manual_has_the_same_bytes(world: Path, manuals: list[Manual], truths: dict[str, dict]) -> None:
    for manual in manuals:
        again = typeset(compose(manual.product))
        assert again.pdf == typeset(manual).pdf == (world / "library" / "documents" / manual.file).read_bytes()
        assert json.loads(json.dumps(manual.truth())) == truths[manual.file]


def test_counts_of_questions_and_gold_segments(questions: dict[str, list[Question]]) -> None:
    for split, asked in questions.items():
        assert Counter(one.kind for one in asked) == dict.fromkeys(KINDS, QUESTIONS[split])
        assert all(1 <= len(one.gold_segments) <= 4 and one.answers for one in asked)
        assert {len(one.gold_segments) for one in asked} == {1, 2, 3, 4}
        assert len({one.text for one in asked}) == len(asked)
        segments = [gold for one in asked for gold in one.gold_segments]
        assert Counter(gold.kind for gold in segments).keys() == {"text", "table", "image"}
        for one in asked:
            documents = {gold.document for gold in one.gold_segments}
            assert (len(documents) > 1) == (one.kind in ("comparison", "across"))


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

    for gold in {gold for asked in questions.values() for one in asked for gold in one.gold_segments}:
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


def test_manuals_look_different(world: Path, manuals: list[Manual]) -> None:
    with_bookmarks = 0
    for path in sorted((world / "library" / "documents").iterdir()):
        with pypdfium2.PdfDocument(path) as document:
            with_bookmarks += any(True for _ in document.get_toc())
    assert with_bookmarks == 24
    broken = [b for m in manuals for b in m.blocks if b.kind == "table" and len({*b.pages}) > 1]
    assert len(broken) >= 2
    levels = [{block.level for block in manual.blocks if block.kind == "heading"} for manual in manuals]
    assert all({1, 2, 3} == found for found in levels)
    sizes = {(len(m.blocks), m.page_count) for m in manuals}
    assert len(sizes) > 4


def test_siblings_differ_in_numbers_and_names_alone(truths: dict[str, dict]) -> None:
    first, second = (truths[f"aerolind-vx-{model}.pdf"] for model in (120, 450))

    def prose(truth: dict) -> list[str]:
        texts = [block["text"] for block in truth["blocks"] if block["kind"] in ("heading", "paragraph")]
        return [re.sub(r"-?\d[\d.,]*", "#", text) for text in texts]

    assert first["blocks"] != second["blocks"]
    assert prose(first) == prose(second)


def test_a_product_is_named_here_and_there(truths: dict[str, dict]) -> None:
    for name, truth in truths.items():
        product = name.removesuffix(".pdf").replace("-", " ")
        sections, current = Counter(), ""
        for block in truth["blocks"]:
            current = block["text"] if block["kind"] == "heading" else current
            sections[current] += sum(product in text.lower().replace("-", " ") for text in cells(block))
        named = sum(count > 0 for count in sections.values())
        assert product in truth["title"].lower()
        assert 4 <= sum(sections.values()) <= 14
        assert named < 0.3 * len(sections)
