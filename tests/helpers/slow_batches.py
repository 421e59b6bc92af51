"""A training that takes batches from worker processes, as a program of its own.

It says what it gets, and ignores signals.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from datamodules.examples.batches import Batch
from datamodules.examples.prefetch import Prefetcher


@dataclass
class Told(Batch):
    """Which process has made it, of which request."""

    process: Tensor
    request: Tensor


class Slow:
    """Makes a batch in some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, request: int) -> Told:
        time.sleep(self.seconds)
        return Told(torch.tensor(os.getpid()), torch.tensor(request))


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(each, lambda *ignored: None)
    from tests.helpers.slow_batches import Slow as Imported  # as the workers know it

    for batch in Prefetcher(Imported(float(sys.argv[1])), 2, keep=True)(iter(range(10**6))):
        print(int(batch.process), int(batch.request), flush=True)
