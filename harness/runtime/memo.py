"""Memo: what costs is computed once for each key, and kept in a journal, so that a stopped command repeats nothing.

Each line of the journal is {"seconds": 1.2, "tokens": 300, "values": {key: value}}, one chunk. Several processes may
use one file at the same time: each appends its chunks under a lock, and reads those of the others before.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.progress import say, track_batches
from harness.runtime.journal import Journal

_WAIT_SECONDS = 60.0  # for another process that is appending, which takes it a fraction of a second


@dataclass(frozen=True, slots=True)
class _Remembered:
    value: Any
    seconds: float  # its share of those of its chunk
    before: bool  # read from the file, not computed here


class Memo:
    """Values of JSON types by key.

    Args:
        file: Of the journal; None keeps the values in memory alone.
        head: What determines the values besides their keys: those under another head are not used.
        what: The values, for what is said of them, such as "pair scores".
        option: Of the command line, which names the file's folder; for error lines.

    Raises:
        ArtifactError: If the file is corrupt before its last line (an interruption may leave an incomplete last line).
            `values` raises it if saving fails.
    """

    def __init__(
        self, file: Path | None = None, head: Mapping[str, object] | None = None, what: str = "", option: str = "--out"
    ) -> None:
        self.count, self.seconds, self.tokens = 0, 0.0, 0  # of all values, those of earlier runs included
        self.seconds_before = 0.0  # of the values that were asked for and were in the file
        self._known: dict[str, _Remembered] = {}
        self._asked: set[str] = set()
        self._journal = None if file is None else Journal(file, head or {}, option)
        self._read()
        if self.count:
            say(f"{file}: reusing {self.count:,} {what} from earlier runs.")

    def values(
        self,
        keys: Sequence[str],
        work: Callable[[Sequence[int]], Sequence[Any]],
        doing: str,
        at_once: int,
        length: Callable[[int], int] | None = None,
        tokens: Callable[[], int] = lambda: 0,
        lasts: Callable[[Any], bool] = lambda _: True,
    ) -> list[Any]:
        """The value of every key, in order; unknown ones are computed and saved, chunk by chunk.

        Args:
            keys: May repeat.
            work: The values of the keys at some places.
            doing: Of the progress line.
            at_once: Most keys of a chunk.
            length: Of what stands at a place: similar ones are computed together, the longest first.
            tokens: Those that were read so far.
            lasts: Whether a value is saved; one that is not is computed again by the next run.
        """
        todo: dict[str, int] = {}
        for place, key in enumerate(keys):
            if key not in self._known:
                todo.setdefault(key, place)
        order = sorted(todo, key=lambda key: -length(todo[key])) if length else [*todo]
        chunks = [order[start : start + at_once] for start in range(0, len(order), at_once)]
        for chunk in track_batches(chunks, len(todo), doing):
            started, before = time.perf_counter(), tokens()
            values = work([todo[key] for key in chunk])
            self._add(dict(zip(chunk, values, strict=True)), time.perf_counter() - started, tokens() - before, lasts)
        new = [key for key in dict.fromkeys(keys) if key not in self._asked]
        self._asked.update(new)
        self.seconds_before += sum(each.seconds for key in new if (each := self._known[key]).before)
        return [self._known[key].value for key in keys]

    def seconds_of(self, key: str) -> float:
        """The share of a value in the time of its chunk."""
        return self._known[key].seconds

    def _add(self, values: Mapping[str, Any], seconds: float, tokens: int, lasts: Callable[[Any], bool]) -> None:
        self._remember(values, seconds, tokens, before=False)
        kept = {key: value for key, value in values.items() if lasts(value)}
        if self._journal is None or not kept:
            return
        share = len(kept) / len(values)
        with self._journal.locked(_WAIT_SECONDS):
            self._read()
            self._journal.append({"seconds": seconds * share, "tokens": int(tokens * share), "values": kept})

    def _read(self) -> None:
        """Take over the chunks that are new in the journal."""
        for chunk in self._journal.read(lambda _, line: line) if self._journal else ():
            self._remember(chunk["values"], float(chunk["seconds"]), int(chunk["tokens"]), before=True)

    def _remember(self, values: Mapping[str, Any], seconds: float, tokens: int, before: bool) -> None:
        """Add a chunk; a value that is known already stays as it was used."""
        for key, value in values.items():
            self._known.setdefault(key, _Remembered(value, seconds / len(values), before))
        self.count += len(values)
        self.seconds += seconds
        self.tokens += tokens
