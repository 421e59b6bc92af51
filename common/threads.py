"""Work on several items at the same time, in threads that end with the command.  Standard library only."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def as_completed(work: Callable[[_Item], _Result], items: Sequence[_Item], concurrency: int) -> Iterator[_Result]:
    """The results of some work on every item, as they come, from so many threads; the first error is raised.

    Not `ThreadPoolExecutor.map`: Python waits for its threads at the end, so that an interrupted command would hang
    until the calls under way have ended, with retries for minutes.
    """
    waiting = deque(items)
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        with suppress(IndexError):  # none is left
            while True:
                item = waiting.popleft()
                try:
                    done.put((work(item), None))
                except BaseException as error:
                    waiting.clear()  # no further item is begun
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
        waiting.clear()
