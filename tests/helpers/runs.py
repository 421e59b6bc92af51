"""Launching train.py as users do, and reading what it left."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import torch

import train
from tests.helpers.forked import ROOT, SAME_THREADS, forked


def fit(folder: Path, *extra: str, torchrun=0, command="fit", strategy="ddp") -> subprocess.CompletedProcess[str]:
    """A run of train.py as a process of its own, or with `torchrun` as so many under a strategy."""
    launch = [sys.executable]
    if torchrun:
        launch += ["-m", "lightning_rag.torchrun", "--standalone", "--nproc-per-node", str(torchrun)]
        extra = (*extra, "--trainer.devices", str(torchrun), "--trainer.strategy", strategy)
    given = {**os.environ, **SAME_THREADS, "PYTHONPATH": str(ROOT)}
    typed = [*launch, str(ROOT / "train.py"), command, "--config", "config.yaml", *extra]
    return subprocess.run(typed, cwd=folder, env=given, capture_output=True, text=True, timeout=300)


def fit_in_turn(folder: Path, runs: list[list[str]]) -> None:
    """Runs with these options by two processes, under DDP unless told, which start once for all of them."""
    two = ["--trainer.devices", "2", "--trainer.strategy", "ddp"]
    (folder / "runs.json").write_text(json.dumps([[*two, *run] for run in runs]))
    ended = forked("tests.helpers.runs_in_turn", folder, "runs.json", processes=2)
    started = [line for line in ended.stdout.splitlines() if line.startswith("run: ")]
    assert ended.returncode == 0, f"{started[-1:]}\n{ended.stderr}"


def fit_here(folder: Path, *extra: str) -> None:
    """As `fit`, in this process: faster, where a separate process proves nothing more."""
    with chdir(folder):
        train.main(["fit", "--config", "config.yaml", *extra])


ROUNDING_NATS = 1e-6  # of fp32 log-probabilities, whose size is about 10


def done(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def metrics(folder: Path, name: str = "tiny") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "checkpoints" / name / "metrics.jsonl").read_text().splitlines()]


def logged(folder: Path, name: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, in order; of throughput only the step: times differ, and counters start anew."""
    return [{"step": row["step"]} if "train/time" in row else row for row in metrics(folder, name)]


def trained(rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    """The lines of losses, metrics and gradient norms of training; rates depend on the machine."""
    return [row for row in rows if "train/grad_norm" in row]


def assert_same_logs(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], relative: float = 1e-6) -> None:
    """Two runs that divided the same steps differently logged the same steps with the same values, at least three.

    Losses near 0 are differences of log-probabilities, whose rounding does not become smaller with them.
    """
    assert len(trained(theirs)) >= 3
    for one, other in zip(trained(ours), trained(theirs), strict=True):
        assert one == pytest.approx(other, rel=relative, abs=ROUNDING_NATS), one["step"]


def weights(folder: Path, name: str, file: str = "last.ckpt") -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoints" / name / file, map_location="cpu", weights_only=True)["state_dict"]


def largest_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def assert_repeated(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Two runs, or a run and its resumption, ended with the same weights: to the last bit on one thread.

    With several threads a library may divide a sum differently in another process, and AdamW turns a rounding error of
    a gradient near zero into a step of up to the learning rate: at most 2e-3 in each of at most 50 steps of these runs.
    """
    assert largest_difference(one, other) <= (0.0 if torch.get_num_threads() == 1 else 50 * 2e-3)
