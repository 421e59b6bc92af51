"""Questions of the synthetic world for several sources.

Existing files unchanged, shares as drawn, what the corpora state, disjoint splits.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from common.records import Passage
from datamodules.formats.reading import read_passages, read_questions
from datamodules.world.questions import contains
from datamodules.world.several_sources import SHARES
from datamodules.world.world import World, generate
from datamodules.world.writing import write_world
from tests.datamodules.world.test_rephrasing import digest, pinned
from tests.helpers.small_world import SMALL

CONFIG = replace(SMALL, singles=600, msrag=80)
FILES = {f"msrag_{name}.jsonl" for name in ("web", "knowledge", "validation", "test")}
STATING = {"web": ("web",), "knowledge": ("knowledge",), "both": ("web", "knowledge"), "neither": ()}


@pytest.fixture(scope="module")
def world() -> World:
    return generate(CONFIG)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(CONFIG, out)
    return out


@pytest.fixture(scope="module")
def corpora(folder: Path) -> dict[str, list[Passage]]:
    return {name: list(read_passages("jsonl", [str(folder / f"msrag_{name}.jsonl")])) for name in ("web", "knowledge")}


def rows(folder: Path, split: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"msrag_{split}.jsonl").read_text().splitlines()]


def test_only_new_files_are_written(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {*pinned("small"), *FILES, "world.json"}
    kept = {name: value for name, value in pinned("small").items() if not name.startswith("fid_")}  # more of these here
    assert {name: digest(folder / name) for name in kept} == kept


def test_shares_are_disclosed_and_are_the_kinds_of_the_questions(folder: Path) -> None:
    record = json.loads((folder / "world.json").read_text())["msrag"]
    for split in ("validation", "test"):
        questions = list(read_questions("flashrag", str(folder / f"msrag_{split}.jsonl")))
        assert Counter(question.kind for question in questions) == record["questions"][split]
        wanted = {share: round(40 * part) for share, part in SHARES.items()}
        assert all(record["questions"][split][share] <= wanted[share] for share in SHARES)
        assert (
            record["questions"][split] == wanted or split == "validation"
        )  # so small a world has too few to choose from
        assert all(question.answers and not question.passages for question in questions)
    assert record["passages"].keys() == {"web", "knowledge"}


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_source_states_the_answer_where_the_share_says_so_and_nowhere_else(
    folder: Path, corpora: dict[str, list[Passage]], world: World, split: str
) -> None:
    base = {f"{split}_single_{n:05d}": one.generated for n, one in enumerate(world.singles[split])}
    for row in rows(folder, split):
        one = base[row["metadata"]["source_id"]]
        assert (row["question"], row["golden_answers"]) == (one.question, [one.answer])
        for name, passages in corpora.items():
            subject = one.steps[0].entity.name
            if name in STATING[row["metadata"]["type"]]:
                assert any(contains(p.title, subject) and contains(p.text, one.answer) for p in passages)
            else:
                texts = [f"{p.title} {p.text}" for p in passages]
                assert not any(contains(text, one.answer) and contains(text, subject) for text in texts)


def test_no_question_and_no_passage_of_one_split_is_in_the_other(folder: Path, world: World) -> None:
    texts = {split: {row["question"] for row in rows(folder, split)} for split in ("validation", "test")}
    assert not texts["validation"] & texts["test"]
    assert len(texts["test"]) == 40
    for split, other in (("validation", "test"), ("test", "validation")):
        names = {entity.name for entity in world.entities[other]} - {entity.name for entity in world.entities[split]}
        assert not any(name in text for text in texts[split] for name in names if " " in name)
