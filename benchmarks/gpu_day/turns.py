"""Steps that are timed in turns, each with its peak of memory; one that finds no room is left out and named."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from benchmarks.training import wait

GIB = 2**30
OURS = "ours"
Row = dict[str, Any]  # of the results; see `row`


def row(what: str, measure: str, values: dict[str, float], **details: Any) -> Row:
    """A result: what was measured, in which unit, and the value of ours and of every other variant."""
    others = {name: value for name, value in values.items() if name != OURS}
    return {"what": what, "measure": measure, OURS: values.get(OURS), "beside": others, **details}


@contextmanager
def room(name: str, missing: dict[str, str]) -> Iterator[None]:
    """Note in `missing` that a variant takes more memory than the card has left."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        missing[name] = str(error).partition(". ")[0]
        torch.cuda.empty_cache()


class Peak:
    """The most memory on the card while something ran, above what was there before: 0 bytes on a CPU."""

    def __init__(self) -> None:
        self.on_card = torch.cuda.is_available()
        self.before = torch.cuda.memory_allocated() if self.on_card else 0
        if self.on_card:
            torch.cuda.reset_peak_memory_stats()

    def bytes(self) -> int:
        """So far."""
        return torch.cuda.max_memory_allocated() - self.before if self.on_card else 0


def choose_attention(name: str) -> None:
    """Ours attends without cuDNN, see `models.devices.avoid_cudnn_attention`; others as torch chooses."""
    torch.backends.cuda.enable_cudnn_sdp(name != OURS)


def compared(what: str, steps: dict[str, Callable[[], object]], units: int, unit: str, repeats: int) -> Iterator[Row]:
    """Two rows: units per second of each step by its median time, and its peak of memory in GiB.

    Args:
        what: Name of the rows.
        steps: Variant -> a step; they run in turns.
        units: Of a step.
        unit: Their name.
        repeats: Timed runs of each step, after one that is not timed.
    """
    missing: dict[str, str] = {}
    seconds: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for number in range(repeats + 1):
        for name, step in steps.items():
            if name in missing:
                continue
            choose_attention(name)
            wait()
            peak, started = Peak(), time.perf_counter()
            with room(name, missing):
                step()
                wait()
                peaks[name] = peak.bytes() / GIB
                if number:
                    seconds.setdefault(name, []).append(time.perf_counter() - started)
    rates = {name: units / statistics.median(each) for name, each in seconds.items()}
    yield row(what, f"{unit}/s", rates, seconds=seconds, no_room=missing)
    yield row(what, "GiB above weights", peaks, no_room=missing)
