"""Several processes at one job, as torchrun starts them.  One process needs none of this and pays nothing for it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

Value = TypeVar("Value")

_TIMEOUT = timedelta(
    days=7
)  # a rank waits for the slowest, and a corpus can take days; torchrun ends all when one dies


@dataclass(frozen=True, slots=True)
class World:
    """The processes of this job.  `rank` counts from 0 to `size` - 1."""

    rank: int
    size: int

    def wait(self) -> None:
        """Return when every process has come here."""
        if self.size > 1:
            from torch import distributed

            distributed.barrier()

    def from_first(self, value: Value) -> Value:
        """What rank 0 gave, on every rank."""
        if self.size == 1:
            return value
        from torch import distributed

        box = [value]
        distributed.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def join_world() -> Iterator[World]:
    """Meet the other processes that torchrun (or anything that sets WORLD_SIZE, RANK, MASTER_ADDR) started; over gloo,
    since they only exchange words."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if size == 1:
        yield World(0, 1)
        return
    from torch import distributed

    distributed.init_process_group("gloo", timeout=_TIMEOUT)
    try:
        yield World(rank, size)
    finally:
        distributed.destroy_process_group()
