"""Batches computed one per thread: same results in the same order, threads restored, errors raised."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from models.parallel_batches import each_batch

CPU = torch.device("cpu")


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("two_threads")
def test_results_come_in_order_from_threads_of_one_core_each() -> None:
    used: set[int] = set()

    def work(batch: int) -> tuple[int, int]:
        used.add(threading.get_ident())
        time.sleep(0.02 if batch % 2 else 0.001)  # the first to start is not the first to end
        return batch * batch, torch.get_num_threads()

    found = list(each_batch(work, range(9), CPU))
    assert found == [(batch, (batch * batch, 1)) for batch in range(9)]
    assert len(used) == 2
    assert threading.get_ident() not in used
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_is_raised_and_what_waits_is_not_computed() -> None:
    begun: list[int] = []

    def work(batch: int) -> int:
        begun.append(batch)
        time.sleep(0.01)
        if batch == 1:
            raise ValueError("batch 1")
        return batch

    with pytest.raises(ValueError, match="batch 1"):
        list(each_batch(work, range(50), CPU))
    assert len(begun) < 50
    assert torch.get_num_threads() == 2
