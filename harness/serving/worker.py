"""Batches of requests that wait at the same time: a bounded queue, and one thread that owns the models.

What waits at the same time for the same work is a batch, up to a number of tokens, so requests share forward passes.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from common.errors import UserError
from common.ranges import NonNegativeFloat, PositiveFloat, PositiveInt

BYTES_PER_TOKEN = 4  # of a text, roughly: a budget needs no exact count
_RATE_MEMORY = 0.9  # share of the earlier estimate of seconds per request that stays with each batch


@dataclass(frozen=True)
class ServingLimits:
    """How much a server takes at once.

    Args:
        requests: That wait or are being worked on; a further one is refused with 429.
        batch_tokens: About how many tokens of questions and passages are worked on together.
        batch_questions: How many questions a system answers together.
        wait_ms: How long a first request waits for others to join it, milliseconds; while the models are busy,
            requests join without it.
        seconds: In which a request must be answered, else 504; also how long a stopping server waits for them.
        body_kib: Size of a request's body, KiB; a larger one is refused with 413.
    """

    requests: PositiveInt = 256
    batch_tokens: PositiveInt = 8192
    batch_questions: PositiveInt = 16
    wait_ms: NonNegativeFloat = 2.0
    seconds: PositiveFloat = 120.0
    body_kib: PositiveInt = 1024


@dataclass(frozen=True)
class Work:
    """One kind of work that is done in batches.

    Args:
        name: For metrics, such as `rerank`.
        run: One result for each item, in order. An item that fails makes it raise, and is then found one by one.
        budget: Of the items' sizes in a batch; an item that is larger is a batch alone.
    """

    name: str
    run: Callable[[Sequence[Any]], Sequence[Any]]
    budget: int


class QueueFullError(Exception):
    """As many requests wait as are allowed.

    Args:
        retry_seconds: After which a request may find a place.
    """

    def __init__(self, retry_seconds: int) -> None:
        super().__init__(f"too many requests wait: try again in {retry_seconds} s")
        self.retry_seconds = retry_seconds


class Pending(Future[Any]):
    """A result, for which somebody waits or no longer waits."""

    left = False

    def give_up(self) -> None:
        """Nobody waits any more; what has begun ends, but is not tried again."""
        self.left = not self.cancel()


@dataclass
class _Waiting:
    work: Work
    item: Any
    size: int
    future: Pending = field(default_factory=Pending)
    since: float = field(default_factory=time.monotonic)


class Worker:
    """Does work in one thread, in the order in which it came, batches of what waits for the same work.

    Args:
        limits: See `ServingLimits`.
        done: Is told of each batch: its work, how many requests it had, and its seconds.
    """

    def __init__(self, limits: ServingLimits, done: Callable[[str, int, float], None] = lambda *_: None) -> None:
        self.limits, self._done = limits, done
        self._queue: deque[_Waiting] = deque()
        self._busy, self._closed, self._seconds = 0, False, 0.1  # of a request, estimated
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._loop, name="models", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests that wait or are being worked on."""
        return len(self._queue) + self._busy

    @property
    def works(self) -> bool:
        """Whether its thread is alive."""
        return self._thread.is_alive()

    def submit(self, work: Work, items: Sequence[Any], size: int = 1) -> list[Pending]:
        """Queue items, all or none; what is cancelled before it begins is not done.

        Raises:
            QueueFullError: If there is no place for all of them, or the worker is closed.
        """
        with self._changed:
            if self.waiting + len(items) > self.limits.requests:  # those who have left keep no place
                self._queue = deque(each for each in self._queue if not each.future.cancelled())
            if self._closed or self.waiting + len(items) > self.limits.requests:
                raise QueueFullError(max(1, math.ceil(self.waiting * self._seconds)))
            waiting = [_Waiting(work, item, size) for item in items]
            self._queue.extend(waiting)
            self._changed.notify()
        return [each.future for each in waiting]

    def close(self, seconds: float | None = None) -> None:
        """Finish what waits, take nothing more, and end the thread, or leave it after some seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _loop(self) -> None:
        while batch := self._next_batch():
            began = time.monotonic()
            results = _results(batch[0].work.run, batch)
            seconds = time.monotonic() - began
            with self._changed:
                self._busy = 0
                self._seconds = _RATE_MEMORY * self._seconds + (1 - _RATE_MEMORY) * seconds / len(batch)
            self._done(batch[0].work.name, len(batch), seconds)
            for each, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    each.future.set_exception(result)
                else:
                    each.future.set_result(result)

    def _next_batch(self) -> list[_Waiting]:
        """The oldest item with others for the same work; empty at the end."""
        with self._changed:
            while True:
                while self._queue and self._queue[0].future.cancelled():
                    self._queue.popleft()
                if not self._queue and self._closed:
                    return []
                batch = self._batch()
                left = self._queue[0].since + self.limits.wait_ms / 1000 - time.monotonic() if self._queue else None
                if batch and (self._closed or left is None or left <= 0 or self._is_full(batch)):
                    taken = [each for each in batch if each.future.set_running_or_notify_cancel()]
                    chosen = {id(each) for each in batch}
                    self._queue = deque(each for each in self._queue if id(each) not in chosen)
                    self._busy = len(taken)
                    if taken:
                        return taken
                    continue
                self._changed.wait(left)

    def _batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        for each in self._queue:
            if each.work is not self._queue[0].work or each.future.cancelled():
                continue
            if batch and size + each.size > each.work.budget:
                break
            batch.append(each)
            size += each.size
        return batch

    def _is_full(self, batch: Sequence[_Waiting]) -> bool:
        return len(batch) < len(self._queue) or sum(each.size for each in batch) >= batch[0].work.budget


def _results(run: Callable[[Sequence[Any]], Sequence[Any]], batch: Sequence[_Waiting]) -> list[Any]:
    """The result of every item, or its error.

    A batch that fails is done again item by item, those that somebody still waits for.
    """
    try:
        if len(results := [*run([each.item for each in batch])]) != len(batch):
            raise RuntimeError(f"{len(results)} results of {len(batch)} requests")
        return results
    except BaseException as error:  # also a panic of a library: the thread must live
        if len(batch) > 1:
            return [result for each in batch for result in ([_LEFT] if each.future.left else _results(run, [each]))]
        if isinstance(error, UserError):
            return [error]
        logging.getLogger("uvicorn.error").exception("a request failed")
        return [error if isinstance(error, Exception) else RuntimeError(str(error))]


_LEFT = TimeoutError("nobody waits for it any more")


def tokens_of(*texts: str) -> int:
    """About how many tokens texts have together."""
    return 1 + sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN
