"""Runs one command and measures it with everything it starts.

Seconds, core-seconds, memory, and the first step of a training.
"""

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.full_scale.process_memory import Peak, descendants
from common.errors import UserError

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans become this process's children, which counts what they cost
_LOOK_EVERY_SECONDS = 0.5
_LOOKING_SHARE = 0.2  # most of the time that reading /proc may take
_ENDED_WITHIN_SECONDS = 60


@dataclass(frozen=True)
class Cost:
    """What a stage took.

    Args:
        stage: Its name.
        seconds: From its start to its end, or to the signal that killed it.
        core_seconds: Of its process and all that it started.
        own_bytes: By rank, peak of the memory that the machine cannot drop; "" for processes without a rank.
        all_own_bytes: The same of all processes together.
        all_mapped_bytes: Peak of mapped files, of all processes together.
        first_step_seconds: To the first training step that was logged; None for other stages.
    """

    stage: str
    seconds: float
    core_seconds: float
    own_bytes: Mapping[str, int]
    all_own_bytes: int
    all_mapped_bytes: int
    first_step_seconds: float | None = None

    def to_row(self) -> dict[str, object]:
        """JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Training:
    """A run of train.py that is watched by what it logs.

    Args:
        run: Its folder.
        kill_after: Kill it, all processes at once, when so many steps have been logged in all its starts; None lets it
            end.
    """

    run: Path
    kill_after: int | None = None

    def steps(self) -> int:
        """Training steps that are logged completely."""
        try:
            lines = (self.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            return 0
        return sum('"train/loss' in line and line.endswith("\n") for line in lines)


def measure(
    stage: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    training: Training | None = None,
) -> Cost:
    """Run a command to its end, or to the step at which it is killed.

    Args:
        stage: Name for the record.
        command: Program and arguments.
        folder: To run in.
        environment: Variables besides those of this process.
        log: File for its output, appended.
        training: What is watched, if it is a training.

    Raises:
        UserError: If the command fails, or ends before it could be killed.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peak, first_step, killed, look_at = Peak(), None, False, 0.0
    before = training.steps() if training else 0
    used, began = _core_seconds(), time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, env={**os.environ, **environment})
    try:
        while process.poll() is None:
            now = time.perf_counter()
            if now >= look_at:
                peak.see()
                took = time.perf_counter() - now
                look_at = now + max(_LOOK_EVERY_SECONDS, took / _LOOKING_SHARE)
            if training:
                steps = training.steps()
                if steps > before and first_step is None:
                    first_step = now - began
                if training.kill_after is not None and steps >= training.kill_after:
                    killed = True
                    break
            time.sleep(0.05)
        seconds = time.perf_counter() - began
    finally:
        _end_all(process)
    if killed != bool(training and training.kill_after is not None) or (not killed and process.returncode):
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise UserError(f"{stage} ended with {process.returncode}: {' '.join(tail)} All of it is in {log}.")
    return Cost(stage, seconds, _core_seconds() - used, peak.own, peak.all_own, peak.all_mapped, first_step)


def _core_seconds() -> float:
    """Of all descendants that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs, the launcher first so that it starts nothing again, and wait for all of it."""
    process.kill()
    process.wait()
    deadline = time.monotonic() + _ENDED_WITHIN_SECONDS
    while left := descendants(os.getpid()):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > deadline:
            raise UserError(f"processes {left} do not end: end them, and run this again.")
        time.sleep(0.02)
