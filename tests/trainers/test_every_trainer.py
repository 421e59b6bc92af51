"""What every trainer does: two processes and accumulated batches train as one, and a run that was stopped goes on.

All phases in which a run can be stopped are tested with one trainer, in `run/test_checkpoints.py`.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.helpers.commands import command, refused
from tests.helpers.every_trainer import PREPARE
from tests.helpers.rewrite_runs import write_gold
from tests.helpers.runs import assert_repeated, logged, weights
from tests.helpers.signal_at import signal_at
from tests.helpers.tiny_runs import (
    assert_accumulation_trains_as_one,
    assert_two_processes_train_as_one,
    fit,
    three_hardly_moving_steps,
)

WITHOUT_DROPOUT = ("--model.dropout", "0")
PER_STRATEGY = ("--model.adapters", "per_strategy")


@dataclass(frozen=True)
class Case:
    """How a trainer's gradients are compared: rows of a step at most, learning rates beside the first, options."""

    rows: int
    heads: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    measure: str = ""  # of validation: its rows are compared
    relative: float = 1e-6
    variants: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"two": ()})


CASES = {
    "drrag": Case(500 // 20, ("head_learning_rate",), WITHOUT_DROPOUT, "val/loss_nats"),
    "rerag": Case(8 * 4, (), (*WITHOUT_DROPOUT, "--model.loss.label_weight", "0.5"), "val/gen_nats"),
    "rerag_lm": Case(8 * 4, (), ("--model.lora.dropout", "0"), "val/gen_nats"),
    "extractive": Case(8, ("head_learning_rate",)),
    "rewriter": Case(12, (), ("--model.lora.dropout", "0"), "val/f1", variants={
        "two": (), "whole": ("--model.lora.rank", "null"),
        "own": (*PER_STRATEGY, "--data.rewrites_per_step", "3", "--trainer.max_steps", "8"),  # steps without a strategy
    }),
}  # fmt: skip


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize("name", CASES)
def test_two_processes_and_accumulation_train_as_one(name, place) -> None:
    PREPARE[name](place)
    case, gold = CASES[name], write_gold(place.folder) if name == "rewriter" else ()
    options = [*three_hardly_moving_steps(*case.heads), *case.options, *gold]
    validated = [*options, *(("--trainer.val_check_interval", "1") if case.measure else ())]
    alone = assert_two_processes_train_as_one(
        place.folder, case.rows, validated, case.variants, case.measure, case.relative
    )
    assert_accumulation_trains_as_one(alone["two"], case.rows, options, case.relative)


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize(
    ("name", "step", "options"),
    [
        ("drrag", 2, ()), ("rerag", 2, ()), ("rerag_lm", 2, ()), ("extractive", 3, ()),
        ("rewriter", 2, ()), ("rewriter", 5, PER_STRATEGY),
    ],
)  # fmt: skip
def test_a_run_stopped_in_the_middle_of_an_epoch_goes_on_exactly(name, step, options, place) -> None:
    PREPARE[name](place)
    fit("whole", *options)
    given = ("fit", "--config", "config.yaml", "--name", "cut", *options)
    ended = command(place.folder, "train.py", *given, *signal_at(hook="on_train_batch_start", step=step))
    refused(ended, 75, f"last.ckpt holds step {step + 1}", "--resume auto")
    assert not Path("checkpoints/cut/serving").exists()
    fit("cut", *options, "--resume", "auto")
    assert_repeated(weights(place.folder, "cut"), weights(place.folder, "whole"))
    assert_repeated(weights(place.folder, "cut", "best.ckpt"), weights(place.folder, "whole", "best.ckpt"))
    assert logged(place.folder, "cut") == logged(place.folder, "whole")
    assert Path("checkpoints/cut/serving/serving.json").is_file()


@pytest.mark.whole_run
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_does_not_learn_says_so_and_its_model_too(name, place, capsys) -> None:
    PREPARE[name](place)
    hardly = three_hardly_moving_steps(*CASES[name].heads)
    folder = fit("tiny", *hardly, "--trainer.max_steps", "4", "--trainer.val_check_interval", "2")
    out = capsys.readouterr().out
    told = json.loads((folder / "serving/serving.json").read_text())["not_learned"]
    assert told
    assert out.count("warning: this run does not learn: ") == 1  # though two validations show it
    assert f"holds a model that has not learned: {'; '.join(told)}. Try " in out
    assert f"**This model has not learned:** {'; '.join(told)}" in (folder / "serving/README.md").read_text()
