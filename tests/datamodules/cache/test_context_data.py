"""RE-RAG's data from stored questions: the same draws as when all files are in memory."""

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from common.records import Passage
from datamodules.examples.context_sets import ContextSet
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.mined_negatives import Mined
from datamodules.rerag import ReRagData
from tests.helpers.layout_rows import HOTPOT
from tests.helpers.mined_files import write_mined
from tests.helpers.rerag_data import fid_rows
from tests.helpers.tiny_runs import set_up
from trainers.rerag import ReRagTrainer


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three training files with repeated questions, and one of mined passages.

    Two layouts, letters of several alphabets.
    """
    rows = fid_rows(40)
    for number, row in enumerate(rows):
        row["ctxs"] += row["ctxs"][:1]  # a repeated passage
        if number % 3 == 0:
            row["answers"] += ["Gödel", "Σίσυφος"]
            row["ctxs"].append({"title": "ΣΊΣΥΦΟΣ", "text": "Kurt Go\u0308del and ΣΊΣΥΦΟΣ , not ΣΊΣΥΦΟΣΑ ."})
    rows[4]["answers"], rows[5]["ctxs"] = [], []
    (tmp_path / "one.json").write_text(json.dumps(rows))
    (tmp_path / "two.json").write_text(json.dumps([*fid_rows(9, seed=1), *rows[:7]]))
    multi = [HOTPOT | {"_id": f"h{n}", "question": f"Who wrote part {n} of Hamlet?"} for n in range(9)]
    (tmp_path / "three.json").write_text(json.dumps(multi))
    mined = [(row["id"], Mined([Passage.of("m", f"{row['answers'] and row['answers'][0]} mined"),
                                Passage.of(row["ctxs"][0]["title"], row["ctxs"][0]["text"])] if row["ctxs"] else []))
             for row in rows[::2]]  # fmt: skip
    write_mined(tmp_path / "mined.jsonl", mined)
    write_mined(tmp_path / "again.jsonl", [(rows[0]["id"], Mined([Passage.of("n", "another")])), ("unknown", Mined())])
    return tmp_path


def read(folder: Path, module: ReRagTrainer, kept: str | None, **options: Any) -> ReRagData:
    """The data of the files, set up for a module."""
    train = [QuestionDataFile(str(folder / "one.json"), "fid"), QuestionDataFile(str(folder / "two.json"), "fid"),
             QuestionDataFile(str(folder / "three.json"), "hotpotqa")]  # fmt: skip
    hard_negatives = [str(folder / "mined.jsonl"), str(folder / "again.jsonl")] if options.pop("mined", True) else []
    data = ReRagData(
        train, **{"validation_fraction": 0.3, "contexts": 3, "validation_contexts": 5, "hard_negatives": hard_negatives,
                  "tokens_per_bucket": 250, "questions_per_step": 7, "cache": kept, **options},
    )  # fmt: skip
    return set_up(data, module)


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> ReRagTrainer:
    return ReRagTrainer(None, str(checkpoints["t5"]), max_tokens=96).load()


OPTIONS: dict[str, dict[str, Any]] = {
    "ranked": {"context_sampling": "ranked"},
    "sampled, augmented": {"context_sampling": "sampled", "crop_words": 3, "crop_growth_words": 1, "substitution": 0.7},
    "gold": {"context_sampling": "gold", "labels": "gold", "mined": False},
    "sampled": {"context_sampling": "sampled", "mined": False},
}
DRAWS = {  # sha256 of all draws of three epochs and of validation, equal to those of a second implementation in memory
    "ranked": "a67dd46234fed4a1", "sampled, augmented": "1cc6dca13836353d", "gold": "5a69cb1b1ad8c0a2",
    "sampled": "2d71f26e2118a686",
}  # fmt: skip


def digest(sets: Iterable[ContextSet]) -> str:
    """Of the questions, answers, labels and passages of context sets."""
    told = [(s.question.text, s.answer, s.labels, [(p.title, p.text) for p in s.passages]) for s in sets]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


@pytest.mark.parametrize("kept", [None, "disk"])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_draw_is_that_of_files_in_memory(
    files: Path, module: ReRagTrainer, request: pytest.FixtureRequest, kept: str | None, name: str
) -> None:
    if kept == "disk":
        request.getfixturevalue("on_disk")
    place = None if kept is None else str(files / "cache")
    for _ in range(2):  # the second one finds what the first one stored
        data = read(files, module, place, **OPTIONS[name])
        how = OPTIONS[name]["context_sampling"]
        epochs = [[data.draws.draw(question, 3, how, epoch) for question in data.questions] for epoch in range(3)]
        assert digest([*chain(*epochs), *data.validation_sets]) == DRAWS[name]
        assert data.counts.tolist() == [len(one.passages) for one in epochs[0]]
        assert len(data.questions) > 20
        assert any(any(one.labels) and not all(one.labels) for one in data.validation_sets)
    assert (files / "cache").exists() == (kept == "disk")
