"""Processes that build or search an index together: their number, and their results in order."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from common.errors import ArtifactError, UserError
from common.killable import CallError, Killable

MAX_WORKERS = 8


def worker_count(workers: int | None) -> int:
    """Number of workers of an option; None: one for each processor of this rank, at most 8."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, min(processors // ranks, MAX_WORKERS)) if workers is None else workers


def results(processes: Killable, calls: Iterable[tuple[Any, ...]], ahead: int) -> Iterator[Any]:
    """The result of each call, in order; at most `ahead` calls are made before the first result is taken.

    Raises:
        ArtifactError: If a call fails, for example as it cannot write a file.
        UserError: If a process ends, for example for want of memory.
    """
    made: deque[Future[Any]] = deque()
    for call in calls:
        made.append(processes.submit(*call))
        if len(made) > ahead:
            yield _result(made.popleft())
    yield from map(_result, made)


def _result(made: "Future[Any]") -> Any:
    try:
        return made.result()
    except CallError as error:
        kind, why = error.args
        if kind == "raised":
            raise ArtifactError(f"A worker process failed: {why}. Free space, or choose another folder.") from error
        raise UserError(
            f"A worker process ended ({why}), for example for want of memory. Try fewer: workers 1."
        ) from error
