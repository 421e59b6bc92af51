"""Mistakes with train.py: one line, the right exit code, nothing written or lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import T5Config, T5ForConditionalGeneration

from common.errors import PREEMPTED
from common.files import digests
from tests.conftest import save_t5
from tests.helpers.commands import command, refused
from tests.helpers.runs import ROOT, assert_repeated, fit, metrics, weights
from tests.helpers.signal_at import signal_at

FIT = ("fit", "--config", "config.yaml")


@pytest.fixture(scope="module")
def place(made) -> Path:
    """A folder with a config and a finished run, `whole`."""
    return made("trained")


def test_a_checkpoint_of_another_model_is_refused(place, tmp_path) -> None:
    save_t5(tmp_path / "other")
    config = T5Config.from_pretrained(tmp_path / "other", d_model=16)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "other")
    before, other = digests(place), ("--model.pretrained", str(tmp_path / "other"))
    ended = command(place, "train.py", *FIT, "--name", "whole", "--resume", "auto", *other)
    refused(ended, 2, "cannot be resumed with these changes: model.pretrained is", "and was")
    last = ("--ckpt_path", "checkpoints/whole/last.ckpt")
    ended = command(place, "train.py", "validate", *FIT[1:], "--name", "whole", *last, *other)
    refused(ended, 74, "the checkpoint holds another model", "size mismatch", "resume with the config.yaml")
    assert digests(place) == before


def started(place: Path, launch: Sequence[str], *options: str) -> subprocess.Popen[str]:
    """A long run, `long`, that has begun to train."""
    typed = [sys.executable, *launch, str(ROOT / "train.py"), *FIT, "--name", "long", "--trainer.max_epochs", "2000"]
    given, out = os.environ | {"PYTHONPATH": str(ROOT)}, subprocess.PIPE
    process = subprocess.Popen(
        [*typed, *options], cwd=place, env=given, stdout=out, stderr=subprocess.STDOUT, text=True
    )
    while process.poll() is None and not (place / "checkpoints/long/metrics.jsonl").is_file():
        time.sleep(0.02)
    return process


@pytest.mark.whole_run
def test_the_same_name_cannot_be_trained_twice_at_once(place) -> None:
    first = started(place, ())
    try:
        line = refused(command(place, "train.py", *FIT, "--name", "long"), 2, "is in use by process", "another --name")
        assert str(first.pid) in line
        refused(command(place, "train.py", *FIT, "--name", "long", "--resume", "auto"), 2, "is in use by process")
    finally:
        first.send_signal(signal.SIGINT)
        out, _ = first.communicate(timeout=120)
        shutil.rmtree(place / "checkpoints/long")
    assert first.returncode == 130, out[-2000:]
    assert "press it again" in out


@pytest.mark.slow
def test_sigterm_to_torchrun_stops_the_run(place) -> None:
    launch = ("-m", "lightning_rag.torchrun", "--standalone", "--nproc-per-node", "2")
    first = started(place, launch, "--trainer.devices", "2")
    first.terminate()
    out, _ = first.communicate(timeout=120)
    shutil.rmtree(place / "checkpoints/long")
    assert first.returncode == PREEMPTED, out[-2000:]
    assert "Traceback" not in out
    assert "last.ckpt holds step" in out


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_rank_stops_all_after_the_same_step(place, rank) -> None:
    name = f"ranks-{rank}"
    stop = signal_at(hook="on_train_batch_start", step=4, rank=rank)
    run = fit(place, "--name", name, *stop, torchrun=2)
    assert run.returncode == PREEMPTED, run.stderr[-2000:]
    assert "Traceback" not in run.stderr
    assert "last.ckpt holds step 5" in run.stderr
    assert run.stderr.count("train.py: stopped by SIGTERM") == 1
    assert fit(place, "--name", name, "--resume", "auto", torchrun=2).returncode == 0
    if rank == 0:
        assert fit(place, "--name", "both", torchrun=2).returncode == 0
    assert_repeated(weights(place, name), weights(place, "both"))
    steps = [row["step"] for row in metrics(place, name) if "train/loss_nats" in row]
    assert steps == list(range(8))
