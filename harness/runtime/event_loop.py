"""Runs coroutines from synchronous code, also inside a notebook, whose event loop is running already.

Many can run at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run in an event loop; in a thread if this one runs a loop already, as in a notebook."""
    if asyncio._get_running_loop() is None:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task]] = Future()

    async def cancellable() -> _Result:
        started.set_result((asyncio.get_running_loop(), asyncio.tasks.current_task()))  # type: ignore[arg-type]
        return await work

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, cancellable())
        try:
            return running.result()
        except BaseException:
            if not running.done():  # the notebook was interrupted
                loop, task = started.result()
                loop.call_soon_threadsafe(task.cancel)
            raise


async def for_each(items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]], concurrency: int) -> None:
    """Do some work on every item, on so many at the same time; the first error ends all."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
