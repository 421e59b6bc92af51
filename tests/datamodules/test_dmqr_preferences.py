"""Rewarded rewrites for training and validation: the split, what is skipped, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError
from datamodules.dmqr_preferences import PreferenceData
from datamodules.examples.data_files import DataFile, QuestionDataFile
from datamodules.formats.preferences import MANIFEST, read_manifest, read_rewrite_preferences
from harness.preferences.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever
from tests.helpers.dpo_runs import data_of, write_gold
from tests.helpers.preference_files import write_preferences
from tests.helpers.rewrite_preferences import model_of
from tests.helpers.tiny_runs import set_up
from trainers.dmqr_dpo import DpoTrainer


@pytest.fixture
def module(rewrite_toy: Path) -> DpoTrainer:
    return DpoTrainer(model_of(rewrite_toy / "start"), max_tokens=40, max_rewrite_tokens=8).load().eval()


def test_questions_are_on_one_side_and_what_does_not_fit_is_counted(
    rewrite_toy: Path, module: DpoTrainer, tmp_path: Path
) -> None:
    made = read_rewrite_preferences(str(rewrite_toy / "preferences"))
    one = made[0].candidates[0]
    equal = replace(made[1], question="who is name1 equal", candidates=(one, replace(one, rewrite="other")))
    long = replace(made[2], question="name1 " * 50)
    wordy = replace(
        made[3], question="who is name2 wordy", candidates=(*made[3].candidates, replace(one, rewrite="city " * 9))
    )
    data = data_of(module, write_preferences(tmp_path / "hard_negatives", [*made, equal, long, wordy]))
    sides = [{each.example.question for each in side} for side in (data.groups, data.held_out)]
    assert not sides[0] & sides[1]
    assert len(data.groups) + len(data.held_out) == len(made) + 2 + ("who is name1 equal" in sides[1])
    assert "unusual_rows" not in data.audit
    counted = data.audit["skipped"]
    assert data.audit["questions_cut"] == 1
    assert max(len(each.input) for each in data.groups + data.held_out) == 40
    assert counted["long_rewrites"] == 1
    assert counted.get("groups_of_equal_rewards", 0) == 1 - ("who is name1 equal" in sides[1])
    separate = data_of(
        module,
        rewrite_toy / "preferences",
        validation=[DataFile(str(write_preferences(tmp_path / "v", made[:6])), "rewrite_preferences")],
    )
    assert len(separate.held_out) == 6
    assert len(separate.groups) == len(made) - 6
    assert data.strategies == ["gqr", "kwr"]


def test_folders_that_were_searched_differently_are_not_rewarded_together(
    rewrite_toy: Path, module: DpoTrainer, tmp_path: Path
) -> None:
    """Their rewards on validation would be those of one of them."""
    write_gold(tmp_path)
    made = read_rewrite_preferences(str(rewrite_toy / "preferences"))
    own, others = (
        write_preferences(tmp_path / name, made[40 * place :][:40]) for place, name in enumerate(("own", "others"))
    )
    (own / MANIFEST).write_text(json.dumps({**read_manifest(str(own)), "fused": False}))
    validation = [DataFile(str(others), "rewrite_preferences")]
    options = {"retriever": Bm25Retriever(tmp_path / "index"), "reward": GoldRecall(depth=5)}
    gold = [QuestionDataFile(str(tmp_path / "gold.json"), "hotpotqa")]
    message = (
        r"others was rewarded with fused true and depth 5, .*own with fused false and depth 5: give folders of one way"
    )
    with pytest.raises(DataError, match=message):
        data_of(module, own, validation=validation, gold_questions=gold, **options)
    assert data_of(module, own, validation=validation).rewarded is None


def test_a_limit_counts_questions_with_the_rewrites_by_all_strategies(rewrite_toy: Path, module: DpoTrainer) -> None:
    source = DataFile(str(rewrite_toy / "preferences"), "rewrite_preferences", limit=30)
    data = set_up(PreferenceData([source], validation_fraction=0.2), module)
    asked = [each.example.question for each in (*data.groups, *data.held_out)]
    assert len(set(asked)) == 30
    assert len(asked) == 60  # by gqr and kwr


def test_the_question_is_a_candidate_with_its_own_reward(rewrite_toy: Path, module: DpoTrainer, tmp_path: Path) -> None:
    made = read_rewrite_preferences(str(rewrite_toy / "preferences"))
    written = replace(made[0].candidates[0], rewrite=made[0].question.upper(), reward=0.2)
    several = replace(made[1], question="who is name1; name2", strategy="decomposition")
    rows = [replace(made[0], candidates=(written, *made[0].candidates)), several, *made[2:]]
    folder = write_preferences(tmp_path / "hard_negatives", rows)
    data = data_of(module, folder, question_as_candidate=True)
    found = {(each.example.question, each.example.strategy): each for each in (*data.groups, *data.held_out)}
    for row in rows:
        group = found[row.question, row.strategy]
        added = [each for each in group.example.candidates if each.rewrite == row.question]
        has_it_already = row.candidates[0].rewrite == row.question.upper()
        assert [(each.reward, each.times, each.greedy) for each in added] == (
            [] if has_it_already or row is several else [(row.question_reward, 0, False)]
        )
        assert len(group.targets) == len(row.candidates) + len(added)
    without = data_of(module, folder)
    assert sum(len(each.targets) for each in data.groups) > sum(len(each.targets) for each in without.groups)


def test_unusual_rows_are_counted_or_an_error(rewrite_toy: Path, module: DpoTrainer, tmp_path: Path) -> None:
    made = read_rewrite_preferences(str(rewrite_toy / "preferences"))
    folder = write_preferences(tmp_path / "twice", [*made, made[0]])
    (line,) = data_of(module, folder).audit["unusual_rows"]
    assert line.startswith("a row with the question and the strategy of an earlier one: 1, left out; the first: ")
    with pytest.raises(DataError, match="Correct it, or omit strict"):
        data_of(module, folder, strict=True)
