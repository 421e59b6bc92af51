"""Batches of what waits together: their sizes, their order, one that fails, and the bound of the queue."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError

import pytest

from common.errors import UserError
from harness.serving.worker import QueueFullError, ServingLimits, Work, Worker, tokens_of


class Gate:
    """Doubles numbers; the first batch waits until it is opened, so that the others queue behind it."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.opened, self.begun = threading.Event(), threading.Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append([*items])
        self.begun.set()
        assert self.opened.wait(30)
        if 13 in items:
            raise UserError("13 is unlucky")
        return [2 * item for item in items]


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_what_waits_for_the_same_work_is_one_batch_up_to_its_budget(gate: Gate) -> None:
    told: list[tuple[str, int]] = []
    worker = Worker(ServingLimits(wait_ms=0), lambda name, count, _: told.append((name, count)))
    work, other = Work("double", gate, 4), Work("other", gate, 4)
    futures = worker.submit(work, [0])
    assert gate.begun.wait(30)
    futures += [*worker.submit(work, [1], 3), *worker.submit(other, [2]), *worker.submit(work, [3, 4])]
    futures += [*worker.submit(work, [5], 9), *worker.submit(other, [6])]
    gate.opened.set()
    assert [future.result(30) for future in futures] == [0, 2, 4, 6, 8, 10, 12]
    worker.close()
    # 1 and 3 fill a budget of 4; the oldest that is left goes next, with what waits for the same; 5 is a batch alone
    assert gate.batches == [[0], [1, 3], [2, 6], [4], [5]]
    assert told == [("double", 1), ("double", 2), ("other", 2), ("double", 1), ("double", 1)]


def test_of_a_failed_batch_what_is_waited_for_is_tried_alone(gate: Gate) -> None:
    worker = Worker(ServingLimits(wait_ms=0))
    futures = worker.submit(Work("double", gate, 9), [11, 12, 13, 14])
    assert gate.begun.wait(30)
    futures[0].give_up()
    gate.opened.set()
    assert (futures[1].result(30), futures[3].result(30)) == (24, 28)
    with pytest.raises(UserError, match="unlucky"):
        futures[2].result(30)
    worker.close()
    assert gate.batches == [[11, 12, 13, 14], [12], [13], [14]]


def test_the_first_waits_for_others_as_long_as_it_may(gate: Gate) -> None:
    gate.opened.set()
    worker = Worker(ServingLimits(wait_ms=300))
    work = Work("double", gate, 9)
    began = time.monotonic()
    (first,) = worker.submit(work, [1])
    time.sleep(0.05)
    assert worker.submit(work, [2])[0].result(30) == 4
    assert first.done()
    assert 0.25 < time.monotonic() - began < 5
    assert gate.batches == [[1, 2]]
    worker.close()


def test_a_full_queue_refuses_and_what_is_given_up_is_not_done(gate: Gate) -> None:
    worker = Worker(ServingLimits(requests=3, wait_ms=0))
    work = Work("double", gate, 9)
    worker.submit(work, [1])
    assert gate.begun.wait(30)
    given_up, kept = worker.submit(work, [2, 3])
    with pytest.raises(QueueFullError) as refusal:
        worker.submit(work, [4])
    assert refusal.value.retry_seconds >= 1
    assert given_up.cancel()
    (instead,) = worker.submit(work, [4])  # who has left keeps no place
    with pytest.raises(QueueFullError):
        worker.submit(work, [5])
    gate.opened.set()
    assert kept.result(30) == 6
    with pytest.raises(CancelledError):
        given_up.result()
    worker.close()
    assert instead.result(0) == 8
    assert gate.batches == [[1], [3, 4]]
    with pytest.raises(QueueFullError):
        worker.submit(work, [5])


def test_several_items_are_taken_all_or_none_and_closing_finishes_them(gate: Gate) -> None:
    worker = Worker(ServingLimits(requests=7, wait_ms=60_000))
    work = Work("double", gate, 2)
    with pytest.raises(QueueFullError):
        worker.submit(work, [*range(8)])
    futures = worker.submit(work, [*range(7)])
    gate.opened.set()
    worker.close()
    assert [future.result(0) for future in futures] == [0, 2, 4, 6, 8, 10, 12]


def test_a_panic_and_missing_results_end_neither_the_thread_nor_the_others() -> None:
    class Panic(BaseException):
        """As libraries written in Rust raise it."""

    def run(items: Sequence[int]) -> list[int]:
        if 13 in items:
            raise Panic("a panic")
        return [*items[:1]] if 14 in items else [*items]

    worker = Worker(ServingLimits(wait_ms=100))
    work = Work("any", run, 9)
    first, panic, last = worker.submit(work, [1, 13, 14])
    assert (first.result(30), last.result(30)) == (1, 14)
    with pytest.raises(RuntimeError, match="a panic"):
        panic.result(30)
    assert worker.works
    assert worker.submit(work, [2])[0].result(30) == 2
    worker.close()


def test_sizes_are_of_bytes() -> None:
    assert tokens_of("") == 1
    assert tokens_of("four", "more") == 3
    assert tokens_of("日本の首都") == 4  # 15 bytes
