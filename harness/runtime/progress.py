"""What a long command tells the person who waits: a bar on a terminal, a line now and then in a log file.  All of it goes
to standard error, so that standard output carries results alone, and only rank 0 speaks."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_LINE_EVERY_SECONDS = 30.0


def say(line: str) -> None:
    """Print one line for the person at the keyboard; silent on ranks other than 0."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)


def in_bytes(count: float) -> str:
    """A number of bytes for people: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def track(items: Iterable[Item], total: int | None, what: str) -> Iterator[Item]:
    """Yield the items and show how far it is.

    Args:
        items: What is worked through.
        total: How many there are; None when that is not known beforehand.
        what: What is being done, e.g. `encoding passages`.
    """
    if os.environ.get("RANK", "0") != "0":
        yield from items
    elif sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, dynamic_ncols=True, leave=False)
    else:
        said = time.monotonic()
        for done, item in enumerate(items):
            if time.monotonic() - said >= _LINE_EVERY_SECONDS:
                said = time.monotonic()
                say(f"{what}: {done}" + (f" of {total}" if total is not None else ""))
            yield item
