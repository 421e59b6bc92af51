"""Progress on standard error: on a terminal a line that is rewritten, in a log file a line every 15 seconds.

Rank 0 only.

Nothing is shown of work that takes less than five seconds. Work within other work is shown behind it, in the same line:
`chunks: 1 of 8, 4 min 10 s left > texts: 512 of 4,096, 30 s left`. Standard output is left to results.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypeVar

Item = TypeVar("Item")
Batch = TypeVar("Batch", bound=Sized)

SHOWN_AFTER_SECONDS = 5.0
LINE_EVERY_SECONDS = 15.0  # in a log file
_REDRAW_EVERY_SECONDS = 0.5  # on a terminal
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "LOCAL_RANK")  # of torchrun, srun, Lightning's launcher


def is_first_process() -> bool:
    """Whether this is the only process of its job, or rank 0: the one that prints."""
    rank = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), "0")
    return rank == "0" and (
        "RANK" in os.environ or os.environ.get("NODE_RANK", "0") == "0"
    )  # LOCAL_RANK is 0 on each node


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line on standard error, or in `file`; ranks other than 0 print nothing."""
    if is_first_process():
        with _SHOWN:
            _screen.erase()
            print(line, file=file or sys.stderr, flush=True)


def in_bytes(count: float) -> str:
    """A number of bytes with its unit: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def in_time(seconds: float) -> str:
    """A duration in its two largest units: `45 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


class Progress:
    """Work that is shown while its `with` block runs.

    Args:
        what: Description of the work, e.g. `encoding passages`.
        total: Number of items; None if unknown, or if the work has no items.
    """

    def __init__(self, what: str, total: int | None = None) -> None:
        self.what, self.total = what, total
        self.done, self._skipped = 0, 0
        self.file: FileProgress | None = None
        self.began = self._counted_from = time.monotonic()

    def advance(self, items: int = 1) -> None:
        """Count finished items."""
        self.done += items
        _screen.draw()

    def skip(self, items: int = 1) -> None:
        """Count items that took no time, such as results of an earlier run.

        The time left is not estimated from them.
        """
        self.done += items
        self._skipped += items
        self._counted_from = time.monotonic()

    def text(self) -> str:
        """The state of the work."""
        seconds = time.monotonic() - self._counted_from
        counted = self.done - self._skipped
        if self.total is None and not self.done:
            return f"{self.what}: {in_time(time.monotonic() - self.began)} so far"
        state = f"{self.what}: {self.done:,}" + (f" of {self.total:,}" if self.total is not None else "")
        if self.total is not None and counted:
            state += f", {in_time((self.total - self.done) * seconds / counted)} left"
        return state if self.file is None else f"{state}, {self.file.text()}"

    def __enter__(self) -> Self:
        """Start to be shown."""
        self.began = self._counted_from = time.monotonic()
        _screen.push(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the line from a terminal."""
        _screen.remove(self)


class FileProgress:
    """How much of a file is read while the `with` block runs.

    A part of the line of the innermost work, if its number of items is unknown.

    Args:
        file: The open file; of an archive the archive itself.
    """

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._bytes = file, max(1, os.fstat(file.fileno()).st_size)
        self._began = time.monotonic()
        self._work: Progress | None = None

    def text(self) -> str:
        """The share that is read, and the time left if the rest takes as long."""
        read = min(1.0, self._file.tell() / self._bytes)  # a file may grow
        state = f"{read:.0%} of {Path(self._file.name).name}"
        return f"{state}, {in_time((time.monotonic() - self._began) * (1 / read - 1))} left" if read else state

    def __enter__(self) -> Self:
        """Join the work that reads the file."""
        with _SHOWN:
            work = _screen.innermost()
            if work is not None and work.total is None and work.file is None:
                self._work, work.file = work, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it, before the file is closed."""
        with _SHOWN:
            if self._work is not None:
                self._work.file = None


class _Screen:
    """The work that is under way, outermost first, and where it is shown."""

    def __init__(self) -> None:
        self._active: list[Progress] = []
        self._drawn = False  # whether a line stands on the terminal
        self._printed_at = -LINE_EVERY_SECONDS
        self._ticking = False

    def push(self, work: Progress) -> None:
        """Show further work; items of a minute each are shown between them, by a thread."""
        if not is_first_process():
            return
        with _SHOWN:
            self._active.append(work)
            if not self._ticking:
                self._ticking = True
                threading.Thread(target=self._tick, daemon=True).start()

    def remove(self, work: Progress) -> None:
        """Show this work no longer."""
        with _SHOWN:
            if work in self._active:
                self._active.remove(work)
            self.erase()

    def innermost(self) -> Progress | None:
        """The work that started last."""
        return self._active[-1] if self._active else None

    def draw(self) -> None:
        """Show the state, if it is time to."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        with _SHOWN:
            shown = [work for work in self._active if now - work.began >= SHOWN_AFTER_SECONDS]
            if not shown or now - self._printed_at < (_REDRAW_EVERY_SECONDS if terminal else LINE_EVERY_SECONDS):
                return
            self._printed_at = now
            line = " > ".join(work.text() for work in shown)
            if terminal:
                self.erase()
                line = _bar(shown[0]) + line
                print(line[: shutil.get_terminal_size().columns - 1], end="", file=sys.stderr, flush=True)
                self._drawn = True
            else:
                print(line, file=sys.stderr, flush=True)

    def erase(self) -> None:
        """Remove the line from the terminal."""
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._drawn = False

    def _tick(self) -> None:
        while True:
            time.sleep(_REDRAW_EVERY_SECONDS)
            with _SHOWN:
                if not self._active:
                    self._ticking = False
                    return
            self.draw()


_SHOWN = threading.RLock()  # held while anything is printed
_screen = _Screen()


def _bar(work: Progress, width: int = 20) -> str:
    if not work.total:
        return ""
    full = min(width, width * work.done // work.total)
    return f"[{'#' * full}{'.' * (width - full)}] "


def track(items: Iterable[Item], total: int | None, what: str) -> Iterator[Item]:
    """Yield the items and show the progress.

    Args:
        items: What to iterate over.
        total: Number of items; None if unknown.
        what: Description of the work, e.g. `encoding passages`.
    """
    with Progress(what, total) as progress:
        for item in items:
            yield item
            progress.advance()


def track_batches(batches: Iterable[Batch], total: int | None, what: str) -> Iterator[Batch]:
    """Yield the batches and show how many of the `total` items in them are done."""
    with Progress(what, total) as progress:
        for batch in batches:
            yield batch
            progress.advance(len(batch))
