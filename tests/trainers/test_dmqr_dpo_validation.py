"""Validation of rewriters that learn from rewards.

Measures by hand, rewards as the command gives them, and runs that collapse.
"""

import json
from pathlib import Path

import pytest
import torch

from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.preferences import read_rewrite_preferences
from harness.preferences.collecting import Collector
from harness.preferences.drafts import Drafter
from harness.preferences.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever
from harness.rewriters.trained import TrainedRewriter
from tests.helpers.dpo_runs import data_of, write_gold
from tests.helpers.preference_files import write_preferences
from tests.helpers.rewrite_preferences import model_of
from trainers.dmqr_dpo import DpoTrainer
from trainers.dmqr_dpo_validation import DpoValidation, WrittenRewrites, summary

TRAINER = "dpo"


@pytest.fixture
def module(rewrite_toy: Path) -> DpoTrainer:
    return DpoTrainer(model_of(rewrite_toy / "start"), max_tokens=40, max_rewrite_tokens=8).load().eval()


@pytest.mark.parametrize("fused", [True, False])
def test_validation_rewards_greedy_rewrites_as_the_command_does(
    workplace: Path, rewrite_toy: Path, module: DpoTrainer, fused: bool
) -> None:
    write_gold(workplace)
    folder = write_preferences(workplace / "here", read_rewrite_preferences(str(rewrite_toy / "preferences")))
    manifest = json.loads((folder / "preferences.json").read_text())
    (folder / "preferences.json").write_text(json.dumps({**manifest, "fused": fused, "depth": 7}))
    retriever, reward = Bm25Retriever(workplace / "index"), GoldRecall(half_rank=2.0, depth=5)
    gold = [QuestionDataFile("gold.json", "hotpotqa")]
    data = data_of(module, folder, retriever=retriever, reward=reward, gold_questions=gold, generated_rewrites=9)
    assert len(data.gold) == 9
    with torch.inference_mode():
        for number, batch in enumerate(data.val_dataloader()):
            module.validation_step(batch, number)
    rewriter = TrainedRewriter(rewrite_toy / "start", "cpu", "fp32")
    for row, question in data.gold.items():
        strategy = data.held_out[row].example.strategy
        collected = Collector(Drafter(rewriter, [strategy]), reward, retriever, fused, 7, 0)([question])
        (rewarded,) = collected.rows
        written = module.validated[row].written
        assert written.reward == pytest.approx(rewarded.candidates[0].reward, abs=1e-6)
    found = module.summarize(list(module.validated.values()))
    assert found["reward_question"] == pytest.approx(0.2)
    assert module.metric_names[0] == "reward"


def test_the_measures_of_a_validation_by_hand() -> None:
    found = summary(
        [DpoValidation(4.0, 2.0, 0.5, 1.0, WrittenRewrites(3, True, False, 0.2, 0.1)), DpoValidation(2.0, 1.0, 1.0,
        0.0, WrittenRewrites(5,
        False, False, 0.8, 0.3)), DpoValidation(0.0, 0.0, 0.0, 0.5, WrittenRewrites(1, False, True, None, 0.0)),
        DpoValidation(0.0, 1.0,
        0.5, 0.5, None)]
    )  # fmt: skip
    assert found == pytest.approx(
        {
            "expected_reward": 0.5, "loss": 1.5, "kl": 0.5, "length": 3.0, "unchanged_share": 1 / 3,
            "empty_share": 1 / 3, "reward": 0.5, "reward_variance": 0.09, "reward_question": 0.2,
        }
    )  # fmt: skip
