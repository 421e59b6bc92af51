"""Forward passes of independent batches on all CPU cores: one batch per thread instead of all threads on one batch.

Operations of small models are too short to be divided over cores.  A GPU, or a single thread, takes batch by batch.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Input = TypeVar("Input")
Output = TypeVar("Output")


def each_batch(
    function: Callable[[Input], Output], batches: Iterable[Input], device: torch.device
) -> Iterator[tuple[Input, Output]]:
    """Yield every batch with the function's result, in order.

    Args:
        function: Computes one batch; it sets its autocast and inference mode itself, because both belong to a thread.
        batches: Inputs; on a CPU at most torch's number of threads are computed at once.
        device: Where the function computes.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        yield from ((batch, function(batch)) for batch in batches)
        return
    batches = list(batches)
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from zip(batches, pool.map(function, batches), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupted caller waits for the batches in computation only
        torch.set_num_threads(threads)  # the setting of a thread also changes the process's matrix library
