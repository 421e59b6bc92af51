"""Data and configuration of tiny runs of `trainers.dmqr_dpo.DpoTrainer`."""

import json
from pathlib import Path
from typing import Any

from common.records import Passage
from datamodules.dmqr_preferences import PreferenceData
from datamodules.examples.data_files import DataFile
from harness.retrievers.bm25 import build_bm25
from tests.conftest import NAMES
from tests.helpers.rewrite_preferences import model_of, questions
from tests.helpers.tiny_runs import set_up, write_config
from trainers.dmqr_dpo import DpoTrainer

GUARD = ("--trainer.callbacks+=trainers.run.collapse.CollapseGuard",)


def write(folder: Path, toy: Path) -> None:
    """The configuration of a tiny run on `rewrite_toy`."""
    options = {
        "pretrained": model_of(toy / "start"), "max_tokens": 40, "max_rewrite_tokens": 8,
        "lora": {"rank": 8, "alpha": 16}, "optimizer": {"learning_rate": 2e-2, "schedule": "constant"},
    }  # fmt: skip
    data = {
        "train": [{"layout": "rewrite_preferences", "path": str(toy / "preferences")}], "validation_fraction": 0.2,
        "groups_per_step": 12, "groups_per_validation_batch": 5, "generated_rewrites": 7,
    }  # fmt: skip
    write_config(
        folder, "dmqr_dpo.DpoTrainer", options, "dmqr_preferences.PreferenceData", data, "val/expected_reward",
        gradient_clip_val=1.0,
    )  # fmt: skip


def data_of(module: DpoTrainer, folder: Path, *place: int, **options: Any) -> PreferenceData:
    """The data of a rank, set up; `place` as in `tests.helpers.tiny_runs.set_up`."""
    given: dict[str, Any] = {"validation_fraction": 0.2, "groups_per_step": 12, **options}
    return set_up(PreferenceData([DataFile(str(folder), "rewrite_preferences")], **given), module, *place)


def write_gold(folder: Path, count: int = 40) -> tuple[str, ...]:
    """Gold passages, an index whose passages depend on the rewrite, and the options that search it."""
    rows = [
        {"_id": str(n), "question": text, "answer": "x", "supporting_facts": [[name, 0]],
            "context": [[name, [f"{name} was born in"]]]}
        for n, text in enumerate(questions(count)) for name in [next(w for w in text.split() if w.startswith("name"))]
    ]  # fmt: skip
    (folder / "gold.json").write_text(json.dumps(rows))
    passages = [Passage.of(n, f"{n} was born in") for n in NAMES]
    noise = [
        Passage.of(f"{n} film", f"{n} is a film director of the city no {i}") for n in NAMES[::2] for i in range(2)
    ]
    build_bm25([*passages, *noise], folder / "index")
    return (
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.reward", "harness.preferences.rewards.GoldRecall", "--data.reward.half_rank", "2",
        "--data.reward.depth", "5", "--data.gold_questions", f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]",
    )  # fmt: skip
