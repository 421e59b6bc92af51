"""Data and configuration of tiny runs of `trainers.dmqr_words_feedback.WordFeedbackTrainer`."""

import json
from pathlib import Path
from typing import Any

import pytest

from datamodules.dmqr_words_feedback import WordFeedbackData
from datamodules.examples.splits import Source
from harness.retrievers.bm25 import build_bm25
from tests.helpers import word_feedback
from tests.helpers.tiny_runs import TRAINER, set_up, use
from trainers.dmqr_words_feedback import WordFeedbackTrainer

CONFIG = """
name: tiny
seed_everything: 0
model:
  class_path: trainers.dmqr_words_feedback.WordFeedbackTrainer
  init_args: {{pretrained: {start}, learning_rate: 1.0e-2, head_learning_rate: 1.0e-2}}
data:
  class_path: datamodules.dmqr_words_feedback.WordFeedbackData
  init_args:
    train: [{{layout: word_feedback, path: {data}}}]
    validation_fraction: 0.2
    questions_per_step: 8
    tokens_per_validation_batch: 200
checkpoint: {{monitor: val/expected_reward}}
early_stopping: {{patience: 100}}
"""


def prepare(folder: Path, toy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with the configuration of a tiny run on `word_toy`; it becomes the present one."""
    (folder / "config.yaml").write_text(CONFIG.format(start=toy / "start", data=toy / "feedback") + TRAINER)
    return use(folder, monkeypatch)


def data_of(module: WordFeedbackTrainer, folder: Path, *place: int, **options: Any) -> WordFeedbackData:
    """The data of a rank, set up; `place` as in `tests.helpers.tiny_runs.set_up`."""
    given: dict[str, Any] = {"validation_fraction": 0.2, "questions_per_step": 8, **options}
    return set_up(WordFeedbackData([Source("word_feedback", str(folder))], **given), module, *place)


def write_gold(folder: Path) -> list[str]:
    """Question files with gold passages, an index with more passages, and the options that search it.

    The lowest reward is kept, so that it is not the starting model's.
    """
    asked = word_feedback.questions(60)
    rows = [
        {
            "_id": str(number), "question": question, "answer": "x", "supporting_facts": [[passages[1].title, 0]],
            "context": [[each.title, [each.text]] for each in passages],
        }
        for number, (question, passages) in enumerate(asked)
    ]  # fmt: skip
    (folder / "gold.json").write_text(json.dumps(rows))
    build_bm25(list({each.id: each for _, passages in asked for each in passages}.values()), folder / "index")
    return [
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.reward", "harness.feedback.rewards.GoldRecall", "--data.reward.half_rank", "2", "--data.gold_questions",
        f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]", "--data.rewarded_questions", "6",
        "--checkpoint.monitor", "val/reward", "--checkpoint.mode", "min", "--early_stopping.mode", "min",
    ]  # fmt: skip
