"""Data and configuration of tiny runs of `trainers.dmqr.RewriterTrainer`."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.records import Passage
from datamodules.dmqr import RewriteData, RewriteDataFile
from harness.retrievers.bm25 import build_bm25
from tests.conftest import NAMES
from tests.helpers import tiny_runs
from tests.helpers.layout_rows import hotpot_row
from tests.helpers.tiny_runs import set_up
from trainers.dmqr import RewriterTrainer


def rows(count: int) -> list[dict[str, Any]]:
    """Learnable rewrites: by gqr the names of the question, by decomposition one query each."""
    rng, made = random.Random(3), []
    for number in range(count):
        one, two = rng.sample(NAMES, 2)
        question = f"who is {one} of the film {two} in the city"
        kinds = [
            {"question": question, "strategy": "decomposition", "rewrite": f"{one} ; {two}"},
            {"question": question, "strategy": "gqr", "rewrite": f"{one} film {two}"},
            {"question": f"who is of {two}", "strategy": "gqr", "rewrite": two, "history": [f"is {one} born", one]},
        ]
        made.append(kinds[number % 3])
    return made


def write_config(folder: Path, model: Path, **changed: Any) -> None:
    """The configuration of a run on the folder's rewrites, with some options of the trainer changed."""
    options = {
        "pretrained": str(model), "max_tokens": 40, "max_rewrite_tokens": 8, "dropout": 0.0,
        "lora": {"rank": 4, "dropout": 0.1}, "optimizer": {"learning_rate": 1e-2, "warmup_steps": 2},
        **changed,
    }  # fmt: skip
    data = {
        "train": [{"layout": "rewrites", "path": str(folder / "rewrites.jsonl")}], "validation_fraction": 0.2,
        "rewrites_per_step": 12, "rewrites_per_validation_batch": 5, "generated_rewrites": 7,
    }  # fmt: skip
    tiny_runs.write_config(folder, "dmqr.RewriterTrainer", options, "dmqr.RewriteData", data, "val/loss_nats", "min")


def write_rewrites(folder: Path, made: Sequence[Mapping[str, Any]]) -> Path:
    """The folder's file of rewrites."""
    (folder / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    return folder / "rewrites.jsonl"


def write_run(folder: Path, model: Path) -> None:
    """Data and the configuration of a run of two epochs of four steps, which trains all weights of a T5."""
    write_rewrites(folder, rows(60))
    optimizer = {"learning_rate": 5e-3, "warmup_steps": 3, "schedule": "linear"}
    write_config(folder, model, dropout=0.1, lora={"rank": None}, optimizer=optimizer)


def gold_of(row: dict[str, Any]) -> dict[str, Any]:
    """HotpotQA's row of a question: a gold passage for each of its names, in other words than the question's."""
    names = [word for word in row["question"].split() if word.startswith("name")]
    return hotpot_row(row["question"], row["question"], "x", names, [(name, f"{name} was born") for name in names])


def write_gold(folder: Path) -> tuple[str, ...]:
    """Gold passages, an index with passages that the questions are likelier to find, and the options that search it."""
    (folder / "gold.json").write_text(json.dumps([gold_of(row) for row in rows(60) if not row.get("history")]))
    noise = [Passage.of(f"{n} film", f"who is {n} in the city of the film {i}") for n in NAMES[::3] for i in range(2)]
    build_bm25([*noise, *(Passage.of(n, f"{n} was born") for n in NAMES)], folder / "index")
    return (
        "--data.retriever", "harness.retrievers.bm25.Bm25Retriever", "--data.retriever.index", str(folder / "index"),
        "--data.gold_questions", f"[{{layout: hotpotqa, path: {folder / 'gold.json'}}}]", "--data.recall_k", "3",
        "--checkpoint.monitor", "val/recall_at_3", "--checkpoint.mode", "max", "--early_stopping.mode", "max",
    )  # fmt: skip


def data_of(module: RewriterTrainer, path: Path, *place: int, **options: Any) -> RewriteData:
    """The data of a rank, set up; `place` as in `tests.helpers.tiny_runs.set_up`."""
    given = {"rewrites_per_step": 12, "validation_fraction": 0.2, "generated_rewrites": 3, **options}
    return set_up(RewriteData([RewriteDataFile(str(path), "rewrites")], **given), module, *place)
