"""Training steps that cannot fit this machine's memory are refused before the first one, with the number."""

import json
import random
import re
from pathlib import Path

import pytest

from tests.conftest import NAMES, hotpot_rows
from tests.helpers.commands import command, refused
from tests.helpers.rerag_data import fid_rows

LONG = 20_000  # tokens: full attention over them needs tens of gigabytes for a single row
RUN = (
    "fit",
    "--name",
    "large",
    "--trainer.accelerator",
    "cpu",
    "--trainer.logger",
    "false",
    "--trainer.max_steps",
    "1",
)
NUMBERS = r"a training step needs about \d+\.\d GiB, and this machine has \d+\.\d GiB free: lower "


def long_text() -> str:
    return " ".join(random.Random(0).choices(NAMES, k=LONG))


def refused_run(folder: Path, *arguments: str) -> str:
    """The line of a refused run, which left no checkpoint."""
    line = refused(command(folder, "train.py", *RUN, *arguments), 2, "raise trainer.accumulate_grad_batches")
    assert re.search(NUMBERS, line), line
    assert not list(folder.rglob("*.ckpt"))
    return line


def test_a_classifiers_step(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    rows = hotpot_rows(8)
    for row in rows:
        row["context"] = [[title, [long_text()]] for title, _ in row["context"][:4]]
        row["supporting_facts"] = [[title, 0] for title, _ in row["context"][:2]]
    (tmp_path / "train.json").write_text(json.dumps(rows))
    line = refused_run(
        tmp_path, "--model", "trainers.drrag.DrRagTrainer", "--model.pretrained", str(checkpoints["bert"]),
        "--model.max_tokens", str(LONG), "--model.attention", "full",
        "--data", "datamodules.drrag.DrRagData", "--data.train", "[{layout: hotpotqa, path: train.json}]",
        "--data.validation_fraction", "0.3", "--data.tokens_per_step", "10000000", "--checkpoint.monitor", "val/auc",
    )  # fmt: skip
    assert "lower data.tokens_per_step or model.max_tokens" in line


def test_a_step_of_estimator_and_generator(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    rows = fid_rows(20)
    for row in rows:
        row["ctxs"][0]["text"] += long_text()
    (tmp_path / "train.json").write_text(json.dumps(rows))
    start = str(checkpoints["t5"])
    line = refused_run(
        tmp_path, "--model", "trainers.rerag.ReRagTrainer", "--model.estimator", start, "--model.generator", start,
        "--model.max_tokens", str(LONG), "--data", "datamodules.rerag.ReRagData",
        "--data.train", "[{layout: fid, path: train.json}]", "--data.validation_fraction", "0.3",
        "--checkpoint.monitor", "val/em",
    )  # fmt: skip
    assert "lower data.questions_per_step, data.contexts or model.max_tokens" in line


def test_a_step_of_span_corruption(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    texts = [" ".join(random.Random(number).choices(NAMES, k=40)) for number in range(60)]
    corpus = "".join(json.dumps({"id": str(i), "title": "", "text": text}) + "\n" for i, text in enumerate(texts))
    (tmp_path / "corpus.jsonl").write_text(corpus)
    line = refused_run(
        tmp_path, "--model", "trainers.t5.SpanCorruptionTrainer", "--model.pretrained", str(checkpoints["t5"]),
        "--data", "datamodules.t5.SpanCorruptionData", "--data.corpora", "[{layout: jsonl, path: corpus.jsonl}]",
        "--data.max_tokens", "24", "--data.mean_span", "2.0", "--data.sequences_per_step", "100000000",
        "--data.validation_fraction", "0.2", "--checkpoint.monitor", "val/loss_nats", "--checkpoint.mode", "min",
    )  # fmt: skip
    assert "lower data.sequences_per_step or data.max_tokens" in line


@pytest.mark.parametrize("max_tokens", ["100", "5000"])
def test_a_large_max_tokens_costs_nothing_where_the_data_is_short(
    checkpoints: dict[str, Path], tmp_path: Path, max_tokens: str
) -> None:
    (tmp_path / "train.json").write_text(json.dumps(hotpot_rows(20)))
    ended = command(
        tmp_path, "train.py", *RUN, "--model", "trainers.drrag.DrRagTrainer", "--model.attention", "full",
        "--model.pretrained", str(checkpoints["bert"]), "--model.max_tokens", max_tokens,
        "--data", "datamodules.drrag.DrRagData", "--data.train", "[{layout: hotpotqa, path: train.json}]",
        "--data.validation_fraction", "0.3", "--data.tokens_per_step", "300", "--checkpoint.monitor", "val/auc",
        "--trainer.limit_val_batches", "0", "--trainer.enable_progress_bar", "false",
    )  # fmt: skip
    assert ended.code == 0, ended.err[-2000:]
    assert re.search(r"memory  activations of \d+ rows of [23]\d tokens", ended.out), ended.out
