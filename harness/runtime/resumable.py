"""Work that outlives an interruption: the results of finished batches in a JSON Lines file, used again by the next run.

first line     what the results depend on; other work is never continued with them
further lines  {"batch": 0, "seconds": 12.3, "result": ...}, in order, each on disk before the next batch begins
"""

import errno
import importlib.metadata
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from common.errors import ArtifactError
from common.files import fsync_folder
from common.locks import exclusive
from harness.runtime.progress import say, track
from harness.runtime.provenance import differences

_FORMAT = 1  # of the lines; raise it when what a result means changes
_LIBRARIES = ("torch", "transformers", "bm25s")  # whose versions may change the last bits of a result
_Batch = TypeVar("_Batch", bound=Sequence)


class ResumableBatches:
    """The results of one kind of batched work.

    Args:
        file: Where they are kept; None keeps nothing.
        depends_on: All that decides the results, by name, JSON types only.
    """

    def __init__(self, file: Path | None = None, depends_on: Mapping[str, object] | None = None) -> None:
        self.file, self.depends_on = file, dict(depends_on or {})
        self.seconds = 0.0  # that the results used again took when they were computed

    def run(self, batches: Sequence[_Batch], work: Callable[[_Batch], Any], what: str) -> Iterator[Any]:
        """The result of every batch, in order: an earlier run's, or else `work(batch)`, kept before it is yielded.

        Args:
            batches: All the work.
            work: Gives a result of JSON types; tuples and keys that are no strings come back as JSON has them.
            what: What is being done, for the progress line.

        Raises:
            ArtifactError: If the file is corrupt before its last line, or the disk refuses.
            UserError: If another process is at the same work.
        """
        if self.file is None:
            yield from map(work, track(batches, len(batches), what))
            return
        versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
        size = len(batches[0]) if batches else 0
        head = json.dumps({**self.depends_on, "batch size": size, "versions": versions, "format": _FORMAT})
        with _opened(self.file) as stored:
            lines, end_bytes = _whole_lines(stored, self.file, json.loads(head))
            if lines:
                say(f"{self.file}: {len(lines)} of {len(batches)} batches of an earlier run are used again.")
            for number, batch in enumerate(track(batches, len(batches), what)):
                if number < len(lines):
                    line, lines[number] = lines[number], {}
                    self.seconds += line["seconds"]
                    yield line["result"]
                    continue
                started = time.perf_counter()
                result = work(batch)
                line = {"batch": number, "seconds": time.perf_counter() - started, "result": result}
                text = ("" if end_bytes else head + "\n") + json.dumps(line) + "\n"
                with _disk(self.file):
                    stored.truncate(end_bytes)  # drops a torn line, or other work
                    stored.write(text.encode())
                    stored.flush()
                    os.fsync(stored.fileno())
                    fsync_folder(self.file.parent)
                end_bytes += len(text)  # json.dumps gives ASCII
                yield result


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The file, locked for this process, created if needed; removed afterwards if nothing was written."""
    with _disk(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(file, f"{file}: another run is at this work. Wait for it, or choose another --out."):
            with _disk(file):
                stored = file.open("a+b")
            try:
                yield stored
            finally:
                empty = not os.fstat(stored.fileno()).st_size
                with suppress(OSError):  # a full disk refuses once more what it refused before
                    stored.close()
                if empty:
                    file.unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # not empty
            file.parent.rmdir()


def _whole_lines(stored: BinaryIO, file: Path, head: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The lines after the first, and where they end, in bytes; nothing of a file with another head."""
    lines: list[dict[str, Any]] = []
    end_bytes = 0
    stored.seek(0)
    for number, text in enumerate(stored, start=-1):
        try:
            if not text.endswith(b"\n"):
                raise ValueError("torn")
            line = json.loads(text)
            if not isinstance(line, dict) or (number >= 0 and not line.keys() >= {"batch", "seconds", "result"}):
                raise ValueError("of another shape")
            if number >= 0 and line["batch"] != number:
                raise ValueError("out of order")
        except (ValueError, KeyError, TypeError) as error:
            if not stored.read(1):
                break  # the last line, torn by an interruption
            raise ArtifactError(f"{file}, line {number + 2} is corrupt: delete the file and run again.") from error
        if number >= 0:
            lines.append(line)
        elif line != head:
            say(f"{file}: an interrupted run that differs in: {differences(line, head)}. Starting over.")
            return [], 0
        end_bytes += len(text)
    return lines, end_bytes


@contextmanager
def _disk(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "Free space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "Choose another --out"
        raise ArtifactError(f"{file}: cannot write: {error.strerror or error}. {cure}, then run again.") from error


def remove_saved(*files: Path) -> None:
    """Remove what was kept, and its folder once nothing else is in it."""
    for file in files:
        file.unlink(missing_ok=True)
        with suppress(OSError):  # others keep their work there too
            file.parent.rmdir()
