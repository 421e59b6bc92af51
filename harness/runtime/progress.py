"""Progress messages: a bar on a terminal, a line every 30 seconds in a log file.  They are printed by rank 0 on standard
error, so that standard output holds results only."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_LINE_EVERY_SECONDS = 30.0


def say(line: str) -> None:
    """Print one line on standard error; ranks other than 0 print nothing."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)


def in_bytes(count: float) -> str:
    """A number of bytes with its unit: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def track(items: Iterable[Item], total: int | None, what: str) -> Iterator[Item]:
    """Yield the items and show the progress.

    Args:
        items: What to iterate over.
        total: Number of items; None if unknown.
        what: Description of the work, e.g. `encoding passages`.
    """
    if os.environ.get("RANK", "0") != "0":
        yield from items
    elif sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, dynamic_ncols=True, leave=False)
    else:
        printed_at = time.monotonic()
        for done, item in enumerate(items):
            if time.monotonic() - printed_at >= _LINE_EVERY_SECONDS:
                printed_at = time.monotonic()
                say(f"{what}: {done}" + (f" of {total}" if total is not None else ""))
            yield item
