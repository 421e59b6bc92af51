"""Progress on standard error by tqdm: a bar on a terminal, in a log file a line every 15 seconds; rank 0 only.

Work of less than five seconds shows nothing. Standard output is for results alone.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

from common.shown_text import terminal

Item = TypeVar("Item")

SHOWN_AFTER_SECONDS = 5.0
LINE_EVERY_SECONDS = 15.0  # in a log file
_REDRAW_EVERY_SECONDS = 0.5  # on a terminal
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "LOCAL_RANK")  # of torchrun, srun, Lightning's launcher


def is_first_process() -> bool:
    """Whether this is the only process of its job, or rank 0: the one that prints."""
    rank = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), "0")
    # LOCAL_RANK is 0 on each node
    return rank == "0" and ("RANK" in os.environ or os.environ.get("NODE_RANK", "0") == "0")


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line on standard error, or in `file`, above the bars; ranks other than 0 print nothing."""
    file = file or sys.stderr
    if is_first_process():
        with tqdm.external_write_mode(file) if file.isatty() else nullcontext():
            print(terminal(line), file=file, flush=True)


def say_facts(facts: Iterable[str]) -> None:
    """Print facts without a full stop, a line each, with one."""
    for fact in facts:
        say(f"{fact}.")


def in_bytes(count: float) -> str:
    """A number of bytes with its unit: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


class Progress(tqdm):
    """Work that is shown while its `with` block runs.

    Args:
        what: Description of the work, e.g. `encoding passages`; nothing is shown without one.
        total: Number of items; None if unknown, or if the work has no items.
        initial: Items that are done, such as results of an earlier run; no time left is estimated from them.
    """

    monitor_interval = 0  # no thread: each item may show the bar
    n: int
    initial: int
    delay: float

    def __init__(self, what: str, total: int | None = None, initial: int = 0) -> None:
        self._terminal = sys.stderr.isatty()
        super().__init__(
            desc=terminal(what), total=total, initial=initial, disable=not (what and is_first_process()),
            delay=SHOWN_AFTER_SECONDS, leave=False,
            mininterval=_REDRAW_EVERY_SECONDS if self._terminal else LINE_EVERY_SECONDS, miniters=1, smoothing=0,
            file=sys.stderr, dynamic_ncols=True,
        )  # fmt: skip
        self.initial = initial  # tqdm leaves it out where nothing is shown
        self._note = threading.Timer(SHOWN_AFTER_SECONDS, self._say_begun)  # for work without items
        self._note.daemon = True
        if total is None and not self.disable:
            self._note.start()

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Draw or erase the bar; in a log file print a line, and erase nothing."""
        if self._terminal:
            if msg == "" or self._time() >= self.start_t + self.delay:
                self.delay = 0  # from now on there is something to erase
                return super().display(msg, pos)
        elif msg is None:
            print(self, file=self.fp, flush=True)
        return None

    def _say_begun(self) -> None:
        if not self.n:
            say(f"{self.desc.removesuffix(': ')} ...")

    def close(self) -> None:
        """Erase the bar."""
        self._note.cancel()
        super().close()


def track(
    items: Iterable[Item], total: int | None, what: str, size: Callable[[Item], int] = lambda _: 1
) -> Iterator[Item]:
    """Yield the items and show the progress.

    Args:
        items: What to iterate over.
        total: Number of items; None if unknown.
        what: Description of the work, e.g. `encoding passages`.
        size: How many of the total an item is; `len` of batches.
    """
    with Progress(what, total) as progress:
        for item in items:
            yield item
            progress.update(size(item))
