"""Rewarded rewrites for training and validation: the split, what is skipped, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError
from datamodules.examples.splits import Source
from datamodules.formats.feedback import read_rewrite_feedback
from harness.feedback.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever
from tests.helpers.rewrite_feedback import model_of, write_feedback
from tests.helpers.rewrite_feedback_runs import data_of, write_gold
from trainers.dmqr_feedback import RewriterFeedbackTrainer


@pytest.fixture
def module(rewrite_toy: Path) -> RewriterFeedbackTrainer:
    return RewriterFeedbackTrainer(model_of(rewrite_toy / "start"), max_tokens=40, max_rewrite_tokens=8).eval()


def test_questions_are_on_one_side_and_what_does_not_fit_is_counted(
    rewrite_toy: Path, module: RewriterFeedbackTrainer, tmp_path: Path
) -> None:
    made = read_rewrite_feedback(str(rewrite_toy / "feedback"))
    one = made[0].candidates[0]
    equal = replace(made[1], question="who is name1 equal", candidates=(one, replace(one, rewrite="other")))
    long = replace(made[2], question="name1 " * 50)
    wordy = replace(
        made[3], question="who is name2 wordy", candidates=(*made[3].candidates, replace(one, rewrite="city " * 9))
    )
    data = data_of(module, write_feedback(tmp_path / "more", [*made, equal, long, wordy]))
    sides = [{each.example.question for each in side} for side in (data.groups, data.held_out)]
    assert not sides[0] & sides[1]
    assert len(data.groups) + len(data.held_out) == len(made) + 1 + ("who is name1 equal" in sides[1])
    counted = data.audit["skipped"]
    assert counted["long_questions"] == 1
    assert counted["long_rewrites"] == 1
    assert counted.get("groups_of_equal_rewards", 0) == 1 - ("who is name1 equal" in sides[1])
    separate = data_of(
        module,
        rewrite_toy / "feedback",
        validation=[Source("rewrite_feedback", str(write_feedback(tmp_path / "v", made[:6])))],
    )
    assert len(separate.held_out) == 6
    assert len(separate.groups) == len(made) - 6
    assert data.strategies == ["gqr", "kwr"]


def test_questions_without_gold_data_are_refused(
    rewrite_toy: Path, module: RewriterFeedbackTrainer, tmp_path: Path
) -> None:
    write_gold(tmp_path, 1)
    options = {"retriever": Bm25Retriever(tmp_path / "index"), "reward": GoldRecall(depth=5)}
    with pytest.raises(DataError, match=r"has none of the .* validation questions, such as"):
        data_of(
            module,
            rewrite_toy / "feedback",
            gold_questions=[Source("hotpotqa", str(tmp_path / "gold.json"))],
            **options,
        )
