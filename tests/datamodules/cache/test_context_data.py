"""RE-RAG's data from stored questions: the same draws as when all files are in memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from common.records import Passage
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.mined_negatives import Mined
from datamodules.rerag import ReRagData
from tests.helpers.context_reference import ContextReference
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


AUGMENTED = {"crop_words": 3, "crop_growth_words": 1, "substitution": 0.7}


@pytest.mark.parametrize("kept", [None, "memory", "disk"])
@pytest.mark.parametrize(
    ("context_sampling", "options"),
    [("ranked", {}), ("sampled", AUGMENTED), ("gold", {"labels": "gold", "mined": False}),
        ("sampled", {"mined": False})],
)  # fmt: skip
def test_every_draw_is_that_of_files_in_memory(
    files: Path, module: ReRagTrainer, request: pytest.FixtureRequest, kept: str | None, context_sampling: Any,
    options: dict[str, Any],
) -> None:  # fmt: skip
    if kept == "disk":
        request.getfixturevalue("on_disk")
    given = {key: value for key, value in options.items() if key != "mined"}
    hard_negatives = [str(files / "mined.jsonl"), str(files / "again.jsonl")] if options.get("mined", True) else []
    layouts = [
        ("fid", str(files / "one.json")),
        ("fid", str(files / "two.json")),
        ("hotpotqa", str(files / "three.json")),
    ]
    reference = ContextReference(layouts, hard_negatives=hard_negatives, **given)
    questions = reference.usable(reference.training, 3, context_sampling, 0)
    if options.get("substitution"):
        reference.learn_substitutes(questions)
    place = None if kept is None else str(files / "cache")
    for start in range(2):  # the second one finds what the first one stored
        data = read(files, module, place, context_sampling=context_sampling, **options)
        assert list(data.questions) == questions, start
        assert len(questions) > 20
        for epoch in range(3):
            drawn = [data.draws.draw(question, 3, context_sampling, epoch) for question in data.questions]
            assert drawn == [reference.draw(question, 3, context_sampling, epoch) for question in questions]
        assert data.counts.tolist() == [
            len(reference.draw(question, 3, context_sampling, 0).passages) for question in questions
        ]
        held_out = reference.usable(reference.validation, 5, "ranked", -1)
        assert list(data.validation_sets) == [reference.draw(question, 5, "ranked", -1) for question in held_out]
        assert any(any(one.labels) and not all(one.labels) for one in data.validation_sets)
    assert (files / "cache").exists() == (kept == "disk")
