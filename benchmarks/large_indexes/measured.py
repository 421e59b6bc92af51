"""Seconds, core-seconds and peak memory of a program and of the processes that it starts (Linux)."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """What a program took.

    Args:
        result: The JSON object that it printed.
        seconds: By the clock.
        core_seconds: Of all processors, its processes' included.
        held_bytes: Peak of the memory that the system cannot drop, of all processes together.
        mapped_bytes: Peak of the file pages that the processes had mapped; the system drops them where memory is short.
    """

    result: dict[str, Any]
    seconds: float
    core_seconds: float
    held_bytes: int
    mapped_bytes: int


def measure(module: str, *arguments: str) -> Measured:
    """Run `python -m MODULE ARGUMENTS`, which prints one JSON object."""
    import time

    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True)
    peak, ended = {"RssAnon": 0, "RssFile": 0}, threading.Event()
    watching = threading.Thread(target=_watch, args=(process.pid, peak, ended))
    watching.start()
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    ended.set()
    watching.join()
    if status:
        sys.exit(f"{module} {' '.join(arguments)} ended with code {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - started
    return Measured(json.loads(printed), seconds, usage.ru_utime + usage.ru_stime, peak["RssAnon"], peak["RssFile"])


def _watch(pid: int, peak: dict[str, int], ended: threading.Event) -> None:
    while not ended.wait(_EVERY_SECONDS):
        sums = dict.fromkeys(peak, 0)
        for each in _tree(pid):
            for name, value in _status(each):
                if name in sums:
                    sums[name] += value
        for name, value in sums.items():
            peak[name] = max(peak[name], value)


def _tree(pid: int) -> list[int]:
    """A process and those below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return []
    return [pid, *(below for child in children for below in _tree(int(child)))]


def _status(pid: int) -> list[tuple[str, int]]:
    """The fields of a process that are numbers of KiB, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    return [(line.split(":")[0], int(line.split()[1]) * 1024) for line in lines if line.endswith(" kB")]
