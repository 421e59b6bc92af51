"""Several processes at one job, as torchrun starts them.  One process needs none of this and pays nothing for it."""

import atexit
import os
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


def local_device(device: str) -> str:
    """This process's own GPU where `auto` or `cuda` would give every process of the machine the same one."""
    if os.environ.get("WORLD_SIZE", "1") == "1" or device not in ("auto", "cuda"):
        return device
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % gpus}" if gpus else device


def join_world() -> World:
    """Meet the other processes that torchrun (or anything that sets WORLD_SIZE, RANK, MASTER_ADDR) started; over gloo,
    since they only exchange words.  They stay joined until the process ends."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if size > 1:
        from torch import distributed

        if not distributed.is_initialized():
            distributed.init_process_group("gloo", timeout=_TIMEOUT)
            atexit.register(distributed.destroy_process_group)
    return World(rank, size)
