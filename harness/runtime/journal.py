"""Append-only journal of finished results: JSON Lines, each line on disk before the next result is computed.

first line     what the results depend on; results saved under another first line are not reused
further lines  one result each

An interruption may leave the last line incomplete: it is not read, and the next append removes it.
"""

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
        self._end_bytes = 0  # of the last line that was read or appended; 0: the first line is not written yet
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
            parse: Converts (number of the result, from 0; the line's JSON value).  It raises ValueError, KeyError or
                TypeError for a value of another form.

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
            self._end_bytes = max(self._end_bytes, len(first))
            stored.seek(self._end_bytes)
            for text in stored:
                if not text.endswith(b"\n"):
                    break  # incomplete after an interruption, or just being written
                try:
                    result = parse(self._results, json.loads(text))
                except (ValueError, KeyError, TypeError) as error:
                    if not stored.read(1):
                        break  # the last line, whose blocks did not all reach the disk
                    raise self._corrupt(self._results + 2) from error
                found.append(result)
                self._end_bytes += len(text)
                self._results += 1
        return found

    def append(self, result: object) -> None:
        """Save one result (JSON types only); it is on disk when this returns.  Call it within `locked`, after `read`.

        What follows the last line that was read is removed: an incomplete line, or results that do not apply.

        Raises:
            ArtifactError: If writing fails, or another program removed or shortened the file.
        """
        first = "" if self._end_bytes else json.dumps(self.head) + "\n"
        text = (first + json.dumps(result) + "\n").encode()
        with self._os_errors("write"):
            with self.file.open("ab") as stored:
                size_bytes = stored.tell()
                if size_bytes < self._end_bytes:
                    raise ArtifactError(f"{self.file} was removed or shortened by another program. Run again.")
                if size_bytes > self._end_bytes:
                    stored.truncate(self._end_bytes)
                stored.write(text)
                stored.flush()
                os.fsync(stored.fileno())
            if first:
                fsync_folder(self.file.parent)
        self._end_bytes += len(text)
        self._results += 1

    def _begins_with_head(self, text: bytes, last: bool) -> bool:
        """Whether a first line equals `head`; `last`: no line follows it."""
        try:
            if not text.endswith(b"\n"):
                raise ValueError("incomplete")
            found = json.loads(text)
            if not isinstance(found, dict):
                raise TypeError("not an object")
        except (ValueError, TypeError) as error:
            if last:
                return False
            raise self._corrupt(1) from error
        if found != self.head and not self._said:
            self._said = True
            by = (
                f"a run that differs in: {differences(found, self.head)}" if "format" in found else "an earlier release"
            )
            say(f"{self.file}: saved by {by}. Starting over.")
        return bool(found == self.head)

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
    """Whether a file has the first line of a journal."""
    with file.open("rb") as stored:
        try:
            first = json.loads(stored.readline())
        except ValueError:
            return False
    return isinstance(first, dict) and "format" in first
