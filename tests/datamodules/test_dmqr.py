"""Rewrites for training and validation: the split by dialogue, what is skipped, and what is refused."""

import json
from pathlib import Path

import pytest
import torch

from common.errors import DataError
from datamodules.dmqr import RewriteDataFile
from models.lora import Lora
from tests.helpers.rewrite_runs import data_of, rows
from trainers.dmqr import RewriterTrainer

TRAINER = "rewriter"


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> RewriterTrainer:
    torch.manual_seed(0)
    return RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4)).load().eval()


def test_a_dialogue_is_on_one_side_of_the_split_and_every_example_is_used_once(
    module: RewriterTrainer, workplace: Path
) -> None:
    first = {"question": "who is name1", "strategy": "gqr", "rewrite": "name1"}
    later = [first | {"question": f"is name{n}", "history": ["who is name1", "yes"]} for n in range(2, 12)]
    made = [*rows(60), first, first, *later, first | {"strategy": "decomposition", "rewrite": "name1 ; name1"}]
    (workplace / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    data = data_of(module, workplace / "rewrites.jsonl")
    sides = [[each.example for each in side] for side in (data.training, data.held_out)]
    assert len(sides[0]) + len(sides[1]) == 60 + 1 + 10 + 1  # the repeated one once
    assert len({e for side in sides for e in side}) == 72
    here = [sum("who is name1" in (*e.history, e.question) for e in side) for side in sides]
    assert sorted(here) == [0, 12]
    (repeated,) = [t for t in (*data.training, *data.held_out) if t.example.rewrite == "name1 ; name1"]
    assert module.rewriter.encode.decoded(repeated.target) == "name1"  # the same sub-question counts once
    assert data.strategies == ["gqr", "decomposition"]  # in the order of the pool
    assert data.audit["questions_with_history"] == sum(bool(e.history) for e in sides[0])


def test_what_does_not_fit_is_cut_or_skipped_and_counted(module: RewriterTrainer, workplace: Path) -> None:
    odd = [
        {"question": "name1 " * 50, "strategy": "gqr", "rewrite": "name1"},
        {"question": "who is name1 a", "strategy": "gqr", "rewrite": "name1 " * 9},
        {"question": "who is name1 b", "strategy": "decomposition", "rewrite": " ; "},
    ]
    (workplace / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows(60), *odd]))
    file = workplace / "rewrites.jsonl"
    data = data_of(module, file)
    assert sorted(data.audit["unusual_rows"]) == [
        f"a rewrite longer than model.max_rewrite_tokens: 1, left out; the first: {file}, line 62",
        f"a rewrite without a query: 1, left out; the first: {file}, line 63",
    ]
    with pytest.raises(DataError, match=r"line 6[23]: a rewrite .* Correct it, or omit strict"):
        data_of(module, file, strict=True)
    assert data.audit["questions_cut"] == 1
    assert len(data.training) + len(data.held_out) == 61
    assert max(len(each.input) for each in data.training + data.held_out) == module.rewriter.encode.max_tokens


def test_validation_files_are_never_trained_on(module: RewriterTrainer, workplace: Path) -> None:
    held = workplace / "held.jsonl"
    held.write_text("".join(json.dumps(row | {"rewrite": "name1"}) + "\n" for row in rows(60)[:10]))
    data = data_of(module, workplace / "rewrites.jsonl", validation=[RewriteDataFile(str(held), "rewrites")])
    assert len(data.held_out) == 10
    assert len(data.training) <= 50
    sides = [
        {(*each.example.history, each.example.question)[0] for each in side} for side in (data.held_out, data.training)
    ]
    assert not sides[0] & sides[1]
