"""The benchmark of the library's difficulty.

The truth as documents, shares of gold segments that are found, on a library of two manuals.
"""

import json
from pathlib import Path

import pytest

from common.errors import MissingInputError
from common.records import Gold, GoldSegment, Passage, Question
from documents.records import Heading, Image, Paragraph, Table
from tests.documents.benchmark import library_difficulty
from tests.documents.benchmark.library_truth import library_truth

BLOCKS = [
    {"kind": "heading", "level": 1, "text": "1 Weight", "page": 2},
    {"kind": "paragraph", "text": "It weighs 3 kg.", "page": 2},
    {"kind": "table", "caption": "Table 1: Size", "header_rows": 1, "rows": [["What", "mm"], ["Width", "40"]],
        "page": 3},
    {"kind": "image", "caption": "Figure 1: Front", "labels": ["Lamp", "Key"], "page": 3},
]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "library" / "truth").mkdir(parents=True)
    for name in ("alpha", "beta"):
        truth = {"title": f"Press {name}", "pages": 3, "blocks": BLOCKS}
        (tmp_path / "library" / "truth" / f"{name}.json").write_text(json.dumps(truth))
    rows = [
        ("How heavy is press beta?", "text", "It weighs 3 kg.", "descriptive"),
        ("How wide is press alpha?", "table", ["Width", "40"], "table"),
    ]
    lines = [
        {"id": kind, "question": text, "golden_answers": ["x"], "metadata": {"type": type_, "gold_segments": [
            {"document": "beta.pdf" if "beta" in text else "alpha.pdf", "kind": kind, "evidence": evidence}]}}
        for text, kind, evidence, type_ in rows
    ]  # fmt: skip
    (tmp_path / "library_test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_the_truth_becomes_documents(world: Path, tmp_path: Path) -> None:
    first, second = library_truth(world)
    assert (first.name, first.title, first.pages, second.name) == ("alpha.pdf", "Press alpha", 3, "beta.pdf")
    assert first.blocks == (
        Heading("1 Weight", 1, 2),
        Paragraph("It weighs 3 kg.", 2),
        Table((("What", "mm"), ("Width", "40")), 1, "Table 1: Size", 3),
        Image(b"Figure 1: Front", ".svg", "Figure 1: Front", "Lamp Key", 3),
    )
    with pytest.raises(MissingInputError, match="holds no library: write one with"):
        library_truth(tmp_path / "elsewhere")


def test_recall_counts_the_gold_segments_of_a_question() -> None:
    gold = (GoldSegment("a.pdf", ("three kg",)), GoldSegment("b.pdf", ("four kg",)))
    found = [[Passage("1", "It weighs three kg.", metadata={"document": "a.pdf"}), Passage("2", "four kg")]]
    assert library_difficulty.recalls([Question("1", "?", gold=Gold(segments=gold))], found).tolist() == [0.5]
