"""Worker processes that make batches.

The same batches, errors in one line, and no process that outlives the training.
"""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from common.errors import MemoryShortError
from datamodules.examples.batches import Batch
from datamodules.examples.prefetch import Prefetcher
from datamodules.examples.step_loader import StepData
from tests.helpers.slow_batches import Slow, Told

ROOT = Path(__file__).parents[3]


def generators() -> tuple[Any, ...]:
    """The states of the generators that a training uses."""
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]


def test_batches_come_in_order_and_no_generator_moves() -> None:
    before = generators()
    ahead = Prefetcher(Slow(0), 2, keep=True)
    first = list(ahead(iter(range(7))))
    again = ahead(iter(range(7, 12)))
    part = [next(again) for _ in range(2)]  # a pass that is given up
    last = list(ahead(iter(range(20, 24))))
    assert [int(each.request) for each in (*first, *part, *last)] == [*range(9), *range(20, 24)]
    assert {int(each.process) for each in last} == {int(each.process) for each in first}  # the workers are kept
    assert os.getpid() not in {int(each.process) for each in first}
    assert generators() == before
    ahead.close()
    del again
    assert not active_children()


def test_workers_end_with_their_owner_also_in_a_cycle_of_references() -> None:
    """As Lightning's loops hold a pass that has been given up."""
    for keep in (True, False):
        owner = SimpleNamespace(ahead=Prefetcher(Slow(0), 2, keep=keep))
        owner.itself, owner.batches = owner, owner.ahead(iter(range(9)))
        next(owner.batches)
        assert len(active_children()) == 2
        started = time.monotonic()
        del owner
        gc.collect()
        assert not active_children()
        assert time.monotonic() - started < 5  # of which DataLoader waits for a worker before it kills it


def test_a_worker_that_is_killed_ends_the_run_in_one_line() -> None:
    ahead = Prefetcher(Slow(0.05), 1)
    batches = ahead(iter(range(1000)))
    os.kill(int(next(batches).process), signal.SIGKILL)
    with pytest.raises(MemoryShortError, match=r"lower data\.workers") as caught:
        list(batches)
    assert "\n" not in str(caught.value)


def session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = file.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == leader and state != "Z":
            found.append(int(file.parent.name))
    return found


@pytest.fixture
def training() -> Iterator[subprocess.Popen[str]]:
    """A training with two workers, which are started."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.slow_batches", "0.2"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    yield started
    for each in session(started.pid):
        os.kill(each, signal.SIGKILL)
    started.communicate()


def test_workers_outlive_the_signals_that_stop_a_run_and_not_the_training(training: subprocess.Popen[str]) -> None:
    assert training.stdout is not None
    processes, requests = zip(*(training.stdout.readline().split() for _ in range(4)), strict=True)
    assert len(set(processes)) == 2
    for each in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGUSR1,
    ):  # to all processes, as a terminal or a scheduler sends them
        os.killpg(training.pid, each)
    later = [training.stdout.readline().split() for _ in range(12)]
    assert {process for process, _ in later} == set(processes)
    assert [*requests, *(request for _, request in later)] == [str(number) for number in range(16)]
    assert len(session(training.pid)) >= 3
    os.kill(training.pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while session(training.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert session(training.pid) == []


def test_pinned_batches_are_pinned_to_the_last_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: -tensor)  # without a GPU there is no pinned memory
    pinned = Told(Told(torch.tensor(1), torch.tensor(2)), [torch.tensor(3), 4]).pin_memory()  # type: ignore[arg-type]
    assert pinned == Told(Told(torch.tensor(-1), torch.tensor(-2)), [torch.tensor(-3), 4])  # type: ignore[arg-type]
    assert isinstance(pinned, Batch)


@pytest.mark.parametrize(
    ("device", "given", "cores", "local", "expected"),
    [("cpu", None, 64, 1, 0), ("cpu", 3, 64, 1, 3), ("cuda", None, 64, 8, 4), ("cuda", None, 16, 8, 2),
        ("cuda", None, 2, 8, 1), ("cuda", 0, 64, 1, 0), ("cuda", 9, 2, 1, 9)],
)  # fmt: skip
def test_the_number_of_workers_follows_from_the_device_unless_it_is_given(
    monkeypatch: pytest.MonkeyPatch, device: str, given: int | None, cores: int, local: int, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    data = StepData()
    data.workers = given
    data.trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device(device)), num_devices=local)  # type: ignore[assignment]
    assert data._workers() == (expected, device == "cuda" and expected > 0)
