"""What the commands print: nothing of the libraries, on one process and on two, and a next command that works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import hotpot_rows
from tests.docs.documents import check_python
from tests.helpers.commands import done
from tests.helpers.console import strangers
from tests.helpers.runs import ROOT, fit
from tests.trainers import test_drrag, test_rerag_training

WANDB = ("--trainer.logger", "wandb")
SHOWN = ("--trainer.enable_progress_bar", "true")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with a tiny run of DR-RAG, `tiny`, made by a process whose lines are checked by the first test."""
    place = tmp_path_factory.mktemp("console")
    (place / "hotpot.json").write_text(json.dumps(hotpot_rows(40)))
    test_drrag.write_config(place, checkpoints["bert"], place / "hotpot.json")
    return place


def infer(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "infer.py"), *arguments], cwd=folder, capture_output=True,
                          text=True, timeout=300, env=os.environ, check=True)  # fmt: skip


@pytest.mark.slow
def test_fit_export_and_ask_print_no_line_of_a_library(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(place))  # no key
    run = fit(place, *WANDB, *SHOWN, "--trainer.max_epochs", "1")
    assert run.returncode == 0, run.stderr[-3000:]
    assert "W&B offline" in run.stderr
    resumed = fit(place, *WANDB, *SHOWN, "--trainer.max_epochs", "2", "--resume", "auto")
    assert strangers(run.stderr + run.stdout + resumed.stderr + resumed.stdout) == []

    served = "checkpoints/tiny/serving"
    exported = infer(place, "export", "--serving", served, "--out", "onnx")
    assert strangers(exported.stderr) == []
    assert re.fullmatch(r"onnx: model\.onnx, maximum difference \S+ nats\n", exported.stdout)

    built = infer(place, "index", "--corpus", "hotpot.json", "--layout", "hotpotqa", "--kind", "bm25", "--out", "bm25")
    asked = infer(place, "ask", "--system", "harness.systems.drrag.DrRag", "--system.serving", served,
                  "--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "bm25",
                  "--question", "where was name3 born")  # fmt: skip
    assert strangers(built.stderr + asked.stderr) == []
    assert asked.stdout.startswith("Question: ")


@pytest.mark.slow
def test_two_processes_print_no_line_of_a_library_and_each_line_once(
    tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    test_rerag_training.write_config(tmp_path, checkpoints["t5"])
    two = ("--trainer.devices", "2", "--trainer.strategy", "ddp", "--model.estimator", str(checkpoints["bert"]))
    # several validations: nothing of the console may be a collective of rank 0 alone
    run = fit(tmp_path, *two, *SHOWN, "--trainer.max_epochs", "3", "--checkpoint.every_n_train_steps", "1")
    assert run.returncode == 0, run.stderr[-3000:]
    assert strangers(run.stderr + run.stdout) == []
    assert run.stderr.count("new head, from random weights: classifier.bias") == 1
    assert run.stdout.count("Training data") == run.stdout.count("Next: ") == 1


def test_a_run_ends_with_a_command_that_the_parser_takes_and_validate_prints_its_metrics(place: Path) -> None:
    fit = ("--config", "config.yaml", "--name", "said")
    ended = done(place, "train.py", "fit", *fit, "--trainer.max_epochs", "1")
    assert strangers(ended.out) == []
    assert re.search(r"^checkpoints/said: 7 steps in .*max_epochs 1 is reached", ended.out, re.MULTILINE)
    (following,) = re.findall(r"^Next: python (.*)$", ended.out, re.MULTILINE)
    check_python(following.split())
    ended = done(place, "train.py", "validate", *fit, "--resume", "auto")
    assert re.search(r"^val/auc +0\.\d{2,4}$", ended.out, re.MULTILINE)
    assert "val/auc" not in ended.err  # seven warnings that there is no logger
