"""Gains of strategies for training and validation: gains and targets by hand, the split, and what is refused."""

import math
from pathlib import Path

import pytest
import torch

from common.errors import DataError
from datamodules.dmqr_adaptive import StrategyClassifierData
from datamodules.examples.data_files import DataFile
from tests.helpers.adaptive_runs import STRATEGIES, data_of, rows
from tests.helpers.preference_files import greedy_preferences, write_preferences
from tests.helpers.tiny_runs import set_up
from trainers.dmqr_adaptive import StrategyClassifierTrainer

NAN = math.nan


@pytest.fixture
def module(checkpoints: dict[str, Path]) -> StrategyClassifierTrainer:
    torch.manual_seed(0)
    return StrategyClassifierTrainer(STRATEGIES, str(checkpoints["bert"]), 24, dropout=0.0).load().eval()


def test_gains_and_targets_by_hand(module: StrategyClassifierTrainer, tmp_path: Path) -> None:
    """Rows of a question become one example; a question of two folders has the mean of its gains."""
    made = rows(40)
    extra = greedy_preferences("who is name1", {"kwr": 0.3, "par": 0.02, "cce": -0.4}, ("where is name2",))
    one = write_preferences(tmp_path / "one", [*made, *extra])
    other = write_preferences(
        tmp_path / "other", [*made, *greedy_preferences("who  is name1", {"kwr": 0.1}, ("where is name2 ",))]
    )
    data = data_of(module, one, other, min_gain=0.02)
    every = [*data.questions, *data.held_out]
    assert len(every) == 41
    (own,) = [each for each in every if each.history]
    assert (own.question, own.history) == ("who is name1", ("where is name2",))
    assert own.gains == pytest.approx((0.2, 0.02, -0.4))
    held_out = own in data.held_out
    side = data.held_out if held_out else data.questions
    batch = data._batch(side, [side.index(own)], [side.index(own)], 1.0)
    assert batch.targets_PS.tolist() == [[1.0, 0.0, 0.0]]  # a gain of min_gain is none
    assert batch.step_targets == 3


def test_of_several_strategies_that_help_the_best_one_can_be_the_only_target(
    module: StrategyClassifierTrainer, tmp_path: Path
) -> None:
    """By hand; of nearly equal gains the strategy that gains most over all training questions counts: here par."""
    made = write_preferences(tmp_path / "made", rows(80))
    best, each = (data_of(module, made, min_gain=0.02, targets=kind) for kind in ("best", "each"))
    means = [sum(column) for column in zip(*(own.gains for own in best.questions), strict=True)]
    assert means.index(max(means)) == 1
    for gains, alone, together in (
        ((0.31, 0.3, 0.1), [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
        ((0.33, 0.3, 0.1), [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        ((0.01, 0.02, -0.1), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ((0.0, 0.02, 0.03), [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ):
        assert best.targets(gains) == alone
        assert each.targets(gains) == together
    missing, *others = best.targets((NAN, 0.1, 0.3))
    assert math.isnan(missing)
    assert others == [0.0, 1.0]


def test_the_split_is_by_dialogue(module: StrategyClassifierTrainer, tmp_path: Path) -> None:
    turns = [
        greedy_preferences(f"name{n} is {t}", {"kwr": 0.3, "par": 0.0, "cce": 0.0}, (f"who is name{n}",))
        for n in range(30)
        for t in range(1, 4)
    ]
    data = data_of(module, write_preferences(tmp_path / "turns", [row for each in turns for row in each]))
    sides = [{each.history for each in side} for side in (data.questions, data.held_out)]
    assert all(sides)
    assert not sides[0] & sides[1]
    some = write_preferences(tmp_path / "some", [row for each in turns[:4] for row in each])
    apart = StrategyClassifierData(
        [DataFile(str(tmp_path / "turns"), "rewrite_preferences")], [DataFile(str(some), "rewrite_preferences")]
    )
    set_up(apart, module)
    assert len(apart.held_out) == 4
    assert len(apart.questions) == 90 - 6  # all turns of the two dialogues


def test_long_questions_are_cut_and_counted(module: StrategyClassifierTrainer, tmp_path: Path) -> None:
    long = [row for n in range(5) for row in greedy_preferences(f"name{n} " * 30, dict.fromkeys(STRATEGIES, 0.5))]
    folder = write_preferences(tmp_path / "long", [*rows(60), *long])
    data = data_of(module, folder)
    assert data.audit["questions_cut"] == 5
    assert len(data.questions) + len(data.held_out) == 65
    assert max(len(each.ids) for each in data.questions + data.held_out) == module.chooser.encode.max_tokens


def test_unusual_rows_are_counted_or_an_error(module: StrategyClassifierTrainer, tmp_path: Path) -> None:
    made = rows(40)
    folder = write_preferences(tmp_path / "twice", [*made, made[0]])
    (line,) = data_of(module, folder).audit["unusual_rows"]
    assert line.startswith("a row with the question and the strategy of an earlier one: 1, left out; the first: ")
    with pytest.raises(DataError, match="Correct it, or omit strict"):
        data_of(module, folder, strict=True)
