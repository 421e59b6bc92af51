"""Resumable batches: finished results are saved as JSON Lines and reused.

first line     what the results depend on; a run for which this differs starts over
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
from common.progress import Progress, say, track
from harness.runtime.provenance import differences

_FORMAT = 1  # version of the lines; increase it when the meaning of a result changes
_LIBRARIES = ("torch", "transformers", "bm25s")  # their versions may change the last bits of a result
_Batch = TypeVar("_Batch", bound=Sequence)


class ResumableBatches:
    """Runs batched work and saves the result of each finished batch.

    Args:
        file: JSON Lines file for the results; None saves nothing.
        depends_on: Everything that determines the results, by name, JSON types only.
    """

    def __init__(self, file: Path | None = None, depends_on: Mapping[str, object] | None = None) -> None:
        self.file, self.depends_on = file, dict(depends_on or {})
        self.seconds = 0.0  # computing time of the reused results, in the earlier runs

    def run(self, batches: Sequence[_Batch], work: Callable[[_Batch], Any], what: str) -> Iterator[Any]:
        """The result of every batch, in order: reused from an earlier run, or `work(batch)`, saved before it is yielded.

        Args:
            batches: All batches.
            work: Returns a result of JSON types; a reused one has lists for tuples and strings for all keys.
            what: Description of the work, for the progress line.

        Raises:
            ArtifactError: If the file is corrupt before its last line, or writing to disk fails.
            UserError: If another process is writing the same file.
        """
        if self.file is None:
            yield from map(work, track(batches, len(batches), what))
            return
        versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
        size = len(batches[0]) if batches else 0
        head = json.dumps({**self.depends_on, "batch size": size, "versions": versions, "format": _FORMAT})
        with _locked(self.file) as stored:
            lines, end_bytes = _complete_lines(stored, self.file, json.loads(head))
            if lines:
                say(f"{self.file}: reusing {len(lines)} of {len(batches)} batches from an earlier run.")
            for number, line in enumerate(lines):
                lines[number] = {}
                self.seconds += line["seconds"]
                yield line["result"]
            with Progress(what, len(batches)) as progress:
                progress.skip(len(lines))
                for number, batch in enumerate(batches[len(lines) :], len(lines)):
                    started = time.perf_counter()
                    result = work(batch)
                    line = {"batch": number, "seconds": time.perf_counter() - started, "result": result}
                    text = ("" if end_bytes else head + "\n") + json.dumps(line) + "\n"
                    with _write_errors(self.file):
                        stored.truncate(end_bytes)  # drops an incomplete line, or results that do not apply
                        stored.write(text.encode())
                        stored.flush()
                        os.fsync(stored.fileno())
                        fsync_folder(self.file.parent)
                    end_bytes += len(text)  # json.dumps gives ASCII
                    progress.advance()
                    yield result


@contextmanager
def _locked(file: Path) -> Iterator[BinaryIO]:
    """Open the file under an exclusive lock, creating it if necessary; removed afterwards if it is empty."""
    with _write_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(file):
            with _write_errors(file):
                stored = file.open("a+b")
            try:
                yield stored
            finally:
                empty = not os.fstat(stored.fileno()).st_size
                with suppress(OSError):  # on a full disk, closing fails like the write that was reported already
                    stored.close()
                if empty:
                    file.unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # not empty
            file.parent.rmdir()


def _complete_lines(stored: BinaryIO, file: Path, head: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The lines after the first, and their end in bytes; none if the first line differs from `head`."""
    lines: list[dict[str, Any]] = []
    end_bytes = 0
    stored.seek(0)
    for number, text in enumerate(stored, start=-1):
        try:
            if not text.endswith(b"\n"):
                raise ValueError("incomplete")
            line = json.loads(text)
            if not isinstance(line, dict) or (number >= 0 and not line.keys() >= {"batch", "seconds", "result"}):
                raise ValueError("missing keys")
            if number >= 0 and line["batch"] != number:
                raise ValueError("out of order")
        except (ValueError, KeyError, TypeError) as error:
            if not stored.read(1):
                break  # the last line, incomplete after an interruption
            raise ArtifactError(f"{file}, line {number + 2} is corrupt: delete the file and run again.") from error
        if number >= 0:
            lines.append(line)
        elif line != head:
            say(f"{file}: saved by a run that differs in: {differences(line, head)}. Starting over.")
            return [], 0
        end_bytes += len(text)
    return lines, end_bytes


@contextmanager
def _write_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "Free space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "Choose another --out"
        raise ArtifactError(f"{file}: cannot write: {error.strerror or error}. {advice}, then run again.") from error


def remove_saved(*files: Path) -> None:
    """Remove files of saved results, and their folder if it is then empty."""
    for file in files:
        file.unlink(missing_ok=True)
        with suppress(OSError):  # not empty
            file.parent.rmdir()
