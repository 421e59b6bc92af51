"""Kill campaign: runs are stopped at random moments, started again, and compared with the unbroken run.

    python -m tests.reliability.campaign --kills 60 --work /tmp/campaign

Three trainers with one and two processes, an index build and a mining run, each stopped by SIGKILL, SIGTERM or SIGINT
(the last as Ctrl-C sends it: to every process). A job is started again until it ends, and may be stopped twice. Its
weights and optimizer states, its exported models, its index or its mined file must equal the unbroken run's bit for
bit, and metrics.jsonl must hold every logged step once, with the same values.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from common.files import digests
from datamodules.formats.reading import read_passages
from harness.retrievers.bm25 import build_bm25
from tests.conftest import hotpot_rows, save_bert, save_t5
from tests.helpers import rewrite_runs
from tests.helpers.runs import logged
from tests.helpers.small_world import corpus, write_encoder, write_jsonl
from tests.trainers import test_drrag, test_rerag_training

ROOT = Path(__file__).parents[2]
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
GRACE_S = 120  # within which a stopped job must have ended
# What a job may exit with: a training stops after its step (75, 130), or dies at once while it still imports its
# libraries.
CODES = {"SIGKILL": {-9}, "SIGTERM": {75, -15}, "SIGINT": {130, -2}}
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false", "WANDB_MODE": "offline"
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """Work that can be stopped and started again."""

    name: str
    command: Callable[[str], list[str]]  # run name -> arguments
    output: Callable[[str], Path]  # run name -> what it writes
    steps: Callable[[Path], int]  # output -> steps done
    difference: Callable[[Path, Path], str]  # output, the unbroken run's -> "" if they are equal


@dataclass
class Trial:
    """One job that was stopped, and the outcome."""

    job: str
    signals: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    difference: str = ""


# The jobs


def training(work: Path, trainer: str, ranks: int, accumulated: int = 1) -> Job:
    """A tiny run of a trainer; with accumulated batches it is validated every three steps."""
    folder = work / f"{trainer}-{ranks}-{accumulated}"
    folder.mkdir()
    accumulation = [
        "--trainer.accumulate_grad_batches", str(accumulated), "--trainer.val_check_interval", str(3 * accumulated)
    ]  # fmt: skip
    devices = ["--trainer.devices", "2", "--trainer.strategy", "ddp"] if ranks == 2 else []

    def command(run: str) -> list[str]:
        return ["train.py", "fit", "--config", str(work / trainer / "config.yaml"), "--name", run, "--resume", "auto",
                "--trainer.max_epochs", "6", "--checkpoint.every_n_train_steps", "3", *devices,
                *(accumulation if accumulated > 1 else [])]  # fmt: skip

    return Job(f"{trainer}, {ranks} process{'es' * (ranks > 1)}{', accumulation' * (accumulated > 1)}", command,
               lambda run: folder / "checkpoints" / run, lambda out: sum("train/loss" in line for line in lines(out)),
               different_runs)  # fmt: skip


def lines(out: Path) -> list[str]:
    """The complete lines of metrics.jsonl."""
    file = out / "metrics.jsonl"
    return (
        [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")] if file.is_file() else []
    )


def different_runs(out: Path, whole: Path) -> str:
    """The first difference between two runs: weights and optimizer states, exported models, metrics."""
    for name in ("last.ckpt", "best.ckpt"):
        one, other = (torch.load(folder / name, weights_only=True) for folder in (out, whole))
        for key in ("state_dict", "optimizer_states", "global_step", "epoch"):
            if not equal(one[key], other[key]):
                return f"{name}: {key}"
    for path in sorted((whole / "serving").rglob("*.safetensors")):
        if not equal(load_file(out / path.relative_to(whole)), load_file(path)):
            return f"{path.relative_to(whole)}"
    if logged(out.parents[1], out.name) != logged(whole.parents[1], whole.name):
        return "metrics.jsonl"
    return ""


def equal(one: Any, other: Any) -> bool:
    """Whether two nested structures are equal, tensors bit for bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def indexing(work: Path) -> Job:
    """A dense index of 6,000 passages, saved in chunks of 64."""

    def command(run: str) -> list[str]:
        return ["infer.py", "index", "--corpus", str(work / "corpus.jsonl"), "--out", str(work / "indexes" / run),
                "--dense.encoder", str(work / "encoder"), "--dense.chunk_passages", "64",
                "--device", "cpu"]  # fmt: skip

    def difference(out: Path, whole: Path) -> str:
        one, other = digests(out), digests(whole)
        return ", ".join(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))

    def chunks(out: Path) -> int:
        return 94 if out.exists() else sum(1 for path in out.parent.glob(f"*{out.name}*/chunk-*"))

    return Job("index", command, lambda run: work / "indexes" / run, chunks, difference)


def mining(work: Path) -> Job:
    """Hard negatives of 3,000 questions from a BM25 index of their passages, saved in batches."""
    build_bm25(read_passages("hotpotqa", [str(work / "mine.json")]), work / "bm25")

    def command(run: str) -> list[str]:
        return ["infer.py", "mine", "--retriever", "harness.retrievers.bm25.Bm25Retriever", "--retriever.index",
                str(work / "bm25"), "--questions", str(work / "mine.json"), "--out",
                str(work / "mined" / run)]  # fmt: skip

    def batches(out: Path) -> int:
        journals = out.parent.glob(f"{out.name}.partial/rank-*.jsonl")
        return 12 if out.exists() else sum(each.read_bytes().count(b"\n") - 1 for each in journals)

    return Job("mine", command, lambda run: work / "mined" / run, batches,
               lambda out, whole: "" if out.read_bytes() == whole.read_bytes() else "the file")  # fmt: skip


def prepare(work: Path) -> list[Job]:
    """Write models, data and configs, and list the jobs."""
    for trainer in ("drrag", "rerag", "rewriter"):
        (work / trainer).mkdir(parents=True)
    save_t5(work / "t5-start")
    save_bert(work / "bert-start")
    data = work / "hotpot.json"
    data.write_text(json.dumps(hotpot_rows(40)))
    test_drrag.write_config(work / "drrag", work / "bert-start", data)
    test_rerag_training.write_config(work / "rerag", work / "t5-start")
    rewrite_runs.write_run(work / "rewriter", work / "t5-start")
    write_jsonl(work / "corpus.jsonl", corpus(6000))
    write_encoder(work / "encoder")
    (work / "mine.json").write_text(json.dumps(hotpot_rows(3000)))
    trainings = [training(work, trainer, ranks) for trainer in ("drrag", "rerag", "rewriter") for ranks in (1, 2)]
    trainings.append(training(work, "drrag", 2, accumulated=2))
    return [*trainings, indexing(work), mining(work)]


# Stopping


def start(job: Job, run: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a job in a session of its own, in the folder above its output's folder."""
    program, *arguments = job.command(run)
    out = job.output(run)
    out.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, str(ROOT / program), *arguments], cwd=out.parent.parent, stdout=file,
                                stderr=file, start_new_session=True, env={**os.environ, **ENVIRONMENT})  # fmt: skip


def stop(job: Job, process: subprocess.Popen[bytes], run: str, name: str, at: int, pause_s: float) -> bool:
    """Send a signal once `at` steps are done and `pause_s` have passed; whether the job was still at work."""
    out = job.output(run)
    time.sleep(0.5)  # Python itself has started
    while process.poll() is None and job.steps(out) < at:
        time.sleep(0.01)
    time.sleep(pause_s)
    if process.poll() is not None:
        return False
    number = getattr(signal, name)
    if name == "SIGTERM":
        process.terminate()  # the launching process alone, as a scheduler may do
    else:
        os.killpg(process.pid, number)
    return True


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a job and everything it has started; its exit code."""
    try:
        return process.wait(GRACE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def try_once(job: Job, number: int, rng: random.Random, work: Path) -> Trial:
    """Stop a job once, sometimes twice, start it again until it ends, and compare."""
    run, trial = f"run-{number}", Trial(job.name)
    log = work / "logs" / f"{job.name.replace(', ', '-').replace(' ', '-')}-{run}.log"
    log.parent.mkdir(exist_ok=True)
    stops = 1 + (rng.random() < 0.25)
    while True:
        process = start(job, run, log)
        if len(trial.signals) < stops:
            name = rng.choice(SIGNALS)
            at, pause_s = (
                rng.randrange(job.steps(job.output("whole"))),
                rng.choice([0.05, 0.05, 0.05, 1.5]) * rng.random(),
            )
            if at == 0:
                pause_s = rng.uniform(0.0, 6.0)  # while libraries are imported and data are read
            if stop(job, process, run, name, at, pause_s):
                trial.signals.append(name)
                trial.steps.append(job.steps(job.output(run)))
                trial.codes.append(ended(process))
                if trial.codes[-1] == 0:  # it had just ended
                    break
                if trial.codes[-1] not in CODES[name]:
                    trial.difference = f"{name} ended with {trial.codes[-1]}, see {log}"
                    return trial
                continue
        code = ended(process)
        if code:
            trial.difference = f"started again, it ended with {code}, see {log}"
            return trial
        break
    trial.difference = job.difference(job.output(run), job.output("whole"))
    return trial


def table(trials: list[Trial]) -> str:
    """A Markdown table: a row per job."""
    rows = [
        "| job | trials | SIGKILL | SIGTERM | SIGINT | stopped twice | equal to the unbroken run |",
        "|---|---|---|---|---|---|---|",
    ]
    for job in dict.fromkeys(trial.job for trial in trials):
        ours = [trial for trial in trials if trial.job == job]
        sent = [name for trial in ours for name in trial.signals]
        counts = " | ".join(str(sent.count(name)) for name in SIGNALS)
        twice = sum(len(trial.signals) > 1 for trial in ours)
        rows.append(
            f"| {job} | {len(ours)} | {counts} | {twice} | {sum(not t.difference for t in ours)} of {len(ours)} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Run the campaign and print its table; exit with 1 if a run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60, help="signals to send")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="jobs whose name begins so")
    parser.add_argument("--work", type=Path, required=True, help="an empty folder for models, data and runs")
    options = parser.parse_args()
    work = options.work.resolve()
    jobs = prepare(work)
    rng = random.Random(options.seed)
    jobs = [job for job in jobs if job.name.startswith(options.only)]
    for job in jobs:
        process = start(job, "whole", work / "whole.log")
        process.wait()
        if process.returncode:
            raise SystemExit(f"{job.name}: the unbroken run ended with {process.returncode}, see {work / 'whole.log'}")
    trials: list[Trial] = []
    number = 0
    while sum(len(trial.signals) for trial in trials) < options.kills:
        job = jobs[number % len(jobs)]
        last = try_once(job, number, rng, work)
        number += 1
        if not last.signals:
            continue  # it had ended before it could be stopped
        trials.append(last)
        print(f"{len(trials)}  {job.name}: {', '.join(last.signals)} at step {last.steps}, exit {last.codes}: "
              f"{last.difference or 'equal'}", flush=True)  # fmt: skip
    print(table(trials))
    if any(trial.difference for trial in trials):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
