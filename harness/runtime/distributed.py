"""Process groups started by torchrun: ranks, and one collective for small Python objects.

A single process never imports torch.distributed.
"""

import atexit
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

Value = TypeVar("Value")

_TIMEOUT = timedelta(days=7)  # ranks wait for the slowest, and encoding can take days; torchrun stops all if one fails


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes of this job: `size` is their number, `rank` is 0 to `size` - 1."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Return when every process has called this."""
        self.gathered(None)

    def broadcast(self, value: Value) -> Value:
        """The value passed by rank 0, on every rank."""
        return self.gathered(value)[0]

    def gathered(self, value: Value) -> list[Value]:
        """The values that all processes passed, by rank, when every process has called this."""
        if self.size == 1:
            return [value]
        from torch import distributed

        values = [value] * self.size
        distributed.all_gather_object(values, value)
        return values


def launched() -> ProcessGroup:
    """The processes that torchrun (or another launcher that sets WORLD_SIZE and RANK) started, not yet joined."""
    return ProcessGroup(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


def join_process_group() -> ProcessGroup:
    """Join the processes that were launched, until the process ends.

    The backend is gloo: only small Python objects are exchanged.
    """
    if launched().size > 1:
        from torch import distributed

        if not distributed.is_initialized():
            distributed.init_process_group("gloo", timeout=_TIMEOUT)
            atexit.register(distributed.destroy_process_group)
    return launched()
