"""Append-only journal of finished results: JSON Lines, each line on disk before the next result is computed.

first line     what the results depend on; results saved under another first line are not reused
further lines  one result each

A line is `["checksum", value]`; the checksum (CRC-32) is that of the values up to this one, so that no line can be
changed, lost or moved unseen. An interruption may leave the last line incomplete: it is not read, and the next append
removes it and says so.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from common.errors import ArtifactError
from common.files import fsync_folder
from common.locks import exclusive
from common.progress import say
from harness.runtime.provenance import differences

_Result = TypeVar("_Result")


class Journal:
    """One journal file, which several processes may read and append to.

    Args:
        file: JSON Lines file; it is created by the first `append`.
        head: What the results depend on, JSON types only; with a key "format", the version of the lines.
        option: The command-line option that chooses the folder; named in error lines.
    """

    def __init__(self, file: Path, head: Mapping[str, object], option: str = "--out") -> None:
        self.file, self.option = file, option
        self.head = json.loads(json.dumps(head))
        self.end_bytes = 0  # of the last line that was read or appended; 0: the first line is not written yet
        self._checksum = 0  # of that line
        self._results = 0  # read or appended so far
        self._said = False

    def locked(self, wait_seconds: float = 0.0) -> AbstractContextManager[None]:
        """Keep other processes from appending.

        Args:
            wait_seconds: How long to wait for another process.

        Raises:
            UserError: If another process still holds the lock.
            ArtifactError: If the folder cannot be written.
        """
        return exclusive(self.file, f"Wait for it, or choose another {self.option}.", wait_seconds)

    def read(self, parse: Callable[[int, Any], _Result]) -> list[_Result]:
        """The results appended since the last call, by any process; none if the first line differs from `head`.

        Args:
            parse: Converts (number of the result, from 0; the line's JSON value). Meanwhile `end_bytes` is where the
                line begins.

        Raises:
            ArtifactError: If a line is corrupt and others follow it, or the file cannot be read.
        """
        found: list[_Result] = []
        if not self.file.exists():
            self.end_bytes = self._results = 0
            return found
        with self._os_errors(), self.file.open("rb") as stored:
            first = stored.readline()
            head = _whole(first, 0)
            if head is None and stored.read(1):
                raise self._corrupt(1)
            if head is None or head[0] != self.head:
                if head is not None and not self._said:
                    self._said = True
                    by = differences(head[0], self.head)
                    say(f"{self.file}: saved by a run that differs in: {by}. Starting over.")
                self.end_bytes = self._results = 0
                return found
            if not self.end_bytes:
                self.end_bytes, self._checksum = len(first), head[1]
            stored.seek(self.end_bytes)
            for line in stored:
                whole = _whole(line, self._checksum)
                if whole is None:
                    if stored.read(1):
                        raise self._corrupt(self._results + 2)
                    break  # incomplete after an interruption, or just being written
                found.append(parse(self._results, whole[0]))
                self._checksum = whole[1]
                self.end_bytes += len(line)
                self._results += 1
        return found

    def result_at(self, begin_bytes: int) -> Any:
        """A result that was read, by the place at which its line begins."""
        with self._os_errors(), self.file.open("rb") as stored:
            stored.seek(begin_bytes)
            return json.loads(stored.readline())[1]

    def append(self, result: object) -> None:
        """Save one result (JSON types only); it is on disk when this returns.

        Call it after `read`, and within `locked` where other processes append to the file.

        What follows the last line that was read is removed: an incomplete line, or results that do not apply.

        Raises:
            ArtifactError: If writing fails, or another program removed or shortened the file.
        """
        first, checksum = (b"", self._checksum) if self.end_bytes else _line(self.head, 0)
        line, checksum = _line(result, checksum)
        with self._os_errors():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            size_bytes = self.file.stat().st_size if self.file.exists() else 0
            if size_bytes < self.end_bytes:
                raise ArtifactError(f"{self.file} was removed or shortened by another program. Run again.")
            with self.file.open("ab") as stored:
                if size_bytes > self.end_bytes:
                    stored.truncate(self.end_bytes)
                    if not (first and self._said):
                        line_number = 1 if first else self._results + 2
                        say(f"{self.file}: line {line_number} is incomplete or damaged: computed again.")
                stored.write(first + line)
                stored.flush()
                os.fsync(stored.fileno())
            if first:
                fsync_folder(self.file.parent)
        self.end_bytes += len(first + line)
        self._checksum = checksum
        self._results += 1

    def _corrupt(self, line: int) -> ArtifactError:
        return ArtifactError(f"{self.file}, line {line} is corrupt: delete the file and run again.")

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ArtifactError(
                f"{self.file}: cannot read or write: {error.strerror or error}. Free space or choose another "
                f"{self.option}, then run again."
            ) from error


def remove_saved(folder: Path) -> None:
    """Remove the journals in a folder, and the folder if it is then empty; other files stay."""
    for file in folder.glob("*.jsonl"):
        with file.open("rb") as stored:
            first = stored.readline()
        if not first or _whole(first, 0):
            file.unlink()
    with suppress(OSError):  # not empty, or it does not exist
        folder.rmdir()


def _line(value: object, before: int) -> tuple[bytes, int]:
    """A line and its checksum, after a line with the checksum `before`."""
    text = json.dumps(value).encode()
    checksum = zlib.crc32(text, before)
    return b'["%08x", %b]\n' % (checksum, text), checksum


def _whole(line: bytes, before: int) -> tuple[Any, int] | None:
    """The value and the checksum of a line, if it is whole."""
    text = line[13:-2]
    checksum = zlib.crc32(text, before)
    return (json.loads(text), checksum) if line == b'["%08x", %b]\n' % (checksum, text) else None
