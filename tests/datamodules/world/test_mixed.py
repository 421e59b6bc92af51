"""Questions of every kind in one file.

Equal numbers, the same draw every time, whole gold, disjoint splits, existing files unchanged.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from common.records import Question
from datamodules.formats.reading import read_passages, read_questions
from datamodules.world.mixed import SOURCES, mixed_questions
from datamodules.world.writing import write_world
from tests.helpers.small_world import SMALL

CONFIG = replace(SMALL, rephrased=300)
COUNT = 12
KINDS = {"single", "multi-hop", "noisy", "web-only", "manuals"}


def library_row(split: str, number: int) -> dict:
    gold = {"document": "a.pdf", "evidence": f"It weighs {number} kg."}
    metadata = {"type": "table", "gold_segments": [gold]}
    return {"id": f"{split}_library_{number}", "question": f"Weight {number} of {split}?",
        "golden_answers": [f"{number} kg"], "metadata": metadata}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world with questions about manuals that nobody has typeset."""
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(CONFIG, out)
    for split in ("test", "validation"):
        lines = [json.dumps(library_row(split, number)) for number in range(20)]
        (out / f"library_{split}.jsonl").write_text("\n".join(lines) + "\n")
    return out


@pytest.fixture(scope="module")
def questions(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Question]]:
    """As a reader of the layout has them."""
    read = {}
    for split, rows in mixed_questions(folder, COUNT, 3).items():
        file = tmp_path_factory.mktemp("mixed") / f"mixed_{split}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        read[split] = list(read_questions("flashrag", str(file)))
    return read


def test_equal_numbers_of_each_kind_in_a_random_order(questions: dict[str, list[Question]]) -> None:
    for split, count in ("test", COUNT), ("validation", COUNT // 2):
        kinds = [question.kind for question in questions[split]]
        assert Counter(kinds) == dict.fromkeys(KINDS, count)
        assert len(dict.fromkeys(kinds[:10])) > 2
        assert len({question.id for question in questions[split]}) == len(kinds)
    assert not {each.text for each in questions["test"]} & {each.text for each in questions["validation"]}


def test_questions_are_those_of_the_other_files_with_their_gold(
    folder: Path, questions: dict[str, list[Question]]
) -> None:
    corpus = {p.id for p in read_passages("jsonl", [str(folder / "corpus.jsonl")])}
    web = {p.id for p in read_passages("jsonl", [str(folder / "web_corpus.jsonl")])}
    rows = mixed_questions(folder, COUNT, 3)
    for split, asked in questions.items():
        known = {
            kind: {each.id: each for each in read_questions(layout, str(folder / name.format(split=split)))}
            for kind, (layout, name) in SOURCES.items()
        }
        for question, row in zip(asked, rows[split], strict=True):
            source = known[question.kind][row["metadata"]["source_id"]]
            assert (question.text, question.answers) == (source.text, source.answers)
            assert question.gold.segments == source.gold.segments
            assert set(question.support) == set(source.support) == {each.id for each in question.passages}
            assert set(question.support) <= (web if question.kind == "web-only" else corpus)
            assert bool(question.support) != bool(question.gold.segments)
            assert row["metadata"]["source_type"] == source.kind != "overlong"
            if question.kind in ("single", "multi-hop"):
                assert (len(question.support) == 1) == (question.kind == "single")
