"""Append-only journal of finished results: JSON Lines, each line on disk before the next result is computed.

first line     what the results depend on; results saved under another first line are not reused
further lines  one result each

A line is `["checksum", value]`; the checksum (CRC-32) is that of the values up to this one, so that no line can be
changed, lost or moved unseen. An interruption may leave the last line incomplete: it is not read, and the next append
removes it and says so.
"""

import errno
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from common.errors import ArtifactError
from common.files import fsync_folder, parse_json
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
        self._end_bytes = 0  # of the last line that was read or appended; 0: the first line is not written yet
        self._checksum = 0  # of that line
        self._results = 0  # read or appended so far
        self._said = False

    @contextmanager
    def locked(self, wait_seconds: float = 0.0) -> Iterator[None]:
        """Keep other processes from appending.  Afterwards an empty file and an empty folder are removed.

        Args:
            wait_seconds: How long to wait for another process.

        Raises:
            UserError: If another process still holds the lock.
            ArtifactError: If the file or its folder cannot be written.
        """
        with self._os_errors("write"):
            self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with exclusive(self.file, f"Wait for it, or choose another {self.option}.", wait_seconds):
                with self._os_errors("write"):
                    if self.file.exists():
                        self.file.open("ab").close()
                try:
                    yield
                finally:
                    if self.file.exists() and not self.file.stat().st_size:
                        self.file.unlink()
        finally:
            with suppress(OSError):  # not empty
                self.file.parent.rmdir()

    def read(self, parse: Callable[[int, Any], _Result]) -> list[_Result]:
        """The results appended since the last call, by any process; none if the first line differs from `head`.

        Args:
            parse: Converts (number of the result, from 0; the line's JSON value).

        Raises:
            ArtifactError: If a line is corrupt and others follow it, or the file cannot be read.
        """
        found: list[_Result] = []
        if not self.file.exists():
            self._end_bytes = self._results = 0
            return found
        with self._os_errors("read"), self.file.open("rb") as stored:
            first = stored.readline()
            if not self._begins_with_head(first, last=not stored.read(1)):
                self._end_bytes = self._results = 0
                return found
            if not self._end_bytes:
                self._end_bytes, self._checksum = len(first), _whole(first, 0)[1]  # type: ignore[index]
            stored.seek(self._end_bytes)
            for line in stored:
                whole = _whole(line, self._checksum)
                if whole is None:
                    if stored.read(1):
                        raise self._corrupt(self._results + 2)
                    break  # incomplete after an interruption, or just being written
                found.append(parse(self._results, whole[0]))
                self._checksum = whole[1]
                self._end_bytes += len(line)
                self._results += 1
        return found

    def append(self, result: object) -> None:
        """Save one result (JSON types only); it is on disk when this returns.  Call it within `locked`, after `read`.

        What follows the last line that was read is removed: an incomplete line, or results that do not apply.

        Raises:
            ArtifactError: If writing fails, or another program removed or shortened the file.
        """
        first, checksum = (b"", self._checksum) if self._end_bytes else _line(self.head, 0)
        line, checksum = _line(result, checksum)
        with self._os_errors("write"):
            with self.file.open("ab") as stored:
                size_bytes = stored.tell()
                if size_bytes < self._end_bytes:
                    raise ArtifactError(f"{self.file} was removed or shortened by another program. Run again.")
                if size_bytes > self._end_bytes:
                    stored.truncate(self._end_bytes)
                    if not (first and self._said):
                        line_number = 1 if first else self._results + 2
                        say(f"{self.file}: line {line_number} is incomplete or damaged: computed again.")
                stored.write(first + line)
                stored.flush()
                os.fsync(stored.fileno())
            if first:
                fsync_folder(self.file.parent)
        self._end_bytes += len(first + line)
        self._checksum = checksum
        self._results += 1

    def _begins_with_head(self, text: bytes, last: bool) -> bool:
        """Whether a first line holds `head`; `last`: no line follows it."""
        whole = _whole(text, 0)
        found = whole[0] if whole else _json(text)
        if not isinstance(found, dict):
            if last:
                return False
            raise self._corrupt(1)
        if (not whole or found != self.head) and not self._said:
            self._said = True
            by = f"a run that differs in: {differences(found, self.head)}" if whole else "an earlier release"
            say(f"{self.file}: saved by {by}. Starting over.")
        return bool(whole and found == self.head)

    def _corrupt(self, line: int) -> ArtifactError:
        return ArtifactError(f"{self.file}, line {line} is corrupt: delete the file and run again.")

    @contextmanager
    def _os_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            cure = "Free space" if full else f"Choose another {self.option}"
            raise ArtifactError(
                f"{self.file}: cannot {action}: {error.strerror or error}. {cure}, then run again."
            ) from error


def remove_saved(folder: Path) -> None:
    """Remove the journals in a folder, and the folder if it is then empty; other files stay."""
    for file in folder.glob("*.jsonl"):
        if _is_journal(file):
            file.unlink()
    with suppress(OSError):  # not empty, or it does not exist
        folder.rmdir()


def _is_journal(file: Path) -> bool:
    """Whether a file has the first line of a journal, of this release or an earlier one."""
    with file.open("rb") as stored:
        first = stored.readline()
    whole = _whole(first, 0)
    head = whole[0] if whole else _json(first)
    return isinstance(head, dict) and "format" in head


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


def _json(line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None
