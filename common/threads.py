"""Work on several items at the same time, in threads that end with the command.  Standard library only."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def as_completed(work: Callable[[_Item], _Result], items: Sequence[_Item], concurrency: int) -> Iterator[_Result]:
    """The results of some work on every item, as they come, from so many threads; the first error is raised.

    Threads of concurrent.futures would keep an interrupted command waiting for the calls under way.
    """
    waiting: SimpleQueue[_Item] = SimpleQueue()
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    for item in items:
        waiting.put(item)

    def run() -> None:
        for item in _taken(waiting):
            try:
                done.put((work(item), None))
            except BaseException as error:
                [*_taken(waiting)]  # no further item is begun
                done.put((None, error))

    for _ in range(min(concurrency, len(items))):
        threading.Thread(target=run, daemon=True).start()
    try:
        for _ in items:
            result, error = done.get()
            if error is not None:
                raise error
            yield result
    finally:
        [*_taken(waiting)]


def _taken(queue: "SimpleQueue[_Item]") -> Iterator[_Item]:
    """What is in a queue, taken from it."""
    with suppress(Empty):
        while True:
            yield queue.get_nowait()
