"""Values by key in an SQLite file, such as replies of language models and pages of the web, each with its time.

SQLite instead of the project's journal: values are looked up one by one, and a journal is read into memory whole, 4 GB
for 100,000 replies of 10,000 tokens. With SQLite a reply takes 0.6 ms to be on disk and 10 microseconds to be found
(journal: 1.0 ms with its lock; 3,000 replies of 300 characters, one core, local disk). No write-ahead log: it does not
work over a network.

Each value has a checksum, of its key, itself and its time. A damaged value is dropped when it is looked up, and a line
says so. One whose key was damaged is never found: it is computed again, like one that is absent.
"""

import json
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self

from common.errors import ArtifactError, UserError
from common.files import create_parents, write_errors
from common.progress import say

WAIT_SECONDS = 60.0  # for another process that writes
_DAY_SECONDS = 86_400.0
_TABLE = (
    "TABLE documents (key TEXT PRIMARY KEY, value TEXT NOT NULL, time REAL NOT NULL, checksum INTEGER) WITHOUT ROWID"
)


class Store:
    """A file that several processes may use at the same time; within `with`, several threads may find and store.

    Args:
        file: Path of the file, which is created with its folder.
        lost: What happens after a damaged file or value was deleted, for what is said.
        max_age_days: What is older counts as absent; None for any age.

    Raises:
        ArtifactError: If the file is corrupt, or cannot be created or written.
        UserError: If another process has locked it for a minute.
    """

    def __init__(self, file: Path, lost: str, max_age_days: float | None = None) -> None:
        self._file, self._lost, self._lock = file, lost, Lock()
        self._since = 0.0 if max_age_days is None else time.time() - max_age_days * _DAY_SECONDS
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        create_parents(self._file)
        with self._errors(), write_errors(self._file):
            if not self._file.exists():
                self._file.touch()  # with the rights of the umask, of which SQLite would leave out the group's to write
            database = sqlite3.connect(self._file, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            database.execute("PRAGMA synchronous = FULL")  # on disk when a statement returns
            database.execute(f"CREATE {_TABLE.replace(' ', ' IF NOT EXISTS ', 1)}")
            # a damaged name would hide all values
            if [*database.execute("SELECT sql FROM sqlite_master")] != [(f"CREATE {_TABLE}",)]:
                raise sqlite3.DatabaseError("it has another table")
        self._database = database
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # a thread may still be about to store
            if self._database:
                self._database.close()
            self._database = None

    def check_writable(self) -> None:
        """Raise ArtifactError if nothing can be stored: better before a request is paid for than after it."""
        self._write("PRAGMA user_version = 1")  # beginning a transaction alone would not fail

    def find(self, key: str) -> tuple[Any, float] | None:
        """The stored value of a key and its time, in seconds since 1970; None without one that is young enough.

        Raises:
            ArtifactError: If the file is corrupt.
        """
        query = "SELECT CAST(value AS BLOB), time, checksum FROM documents WHERE key = ?"
        with self._lock, self._errors():
            assert self._database is not None
            row = self._database.execute(query, (key,)).fetchone()
        if row and _checksum_of(key, *row[:2]) != row[2]:
            say(f"{self._file}: a damaged value was dropped: {self._lost}.")
            self.drop(key)
            return None
        return (json.loads(row[0]), row[1]) if row and row[1] >= self._since else None

    def store(self, key: str, value: object, seconds: float | None = None) -> None:
        """Store a value (JSON types) with its time, now when None; it is on disk when this returns.

        One that another process stored first stays, unless it is too old. Nothing is stored after the end of `with`, as
        by an interruption.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        text, stored = json.dumps(value), float(time.time() if seconds is None else seconds)
        self._write(
            "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
            "time = excluded.time, checksum = excluded.checksum WHERE documents.time < ?",
            *(key, text, stored, _checksum_of(key, text.encode(), stored), self._since),
        )

    def drop(self, key: str) -> None:
        """Forget the value of a key; raises ArtifactError as `store`."""
        self._write("DELETE FROM documents WHERE key = ?", key)

    def _write(self, statement: str, *values: object) -> None:
        with self._lock, self._errors():
            if self._database:
                self._database.execute(statement, values)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors as one line with the cure."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the text of an error may be damaged, too
            name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
            if name.startswith("SQLITE_BUSY"):
                raise UserError(
                    f"{self._file} was locked by another process for {WAIT_SECONDS:.0f} s. Run again when it has "
                    "ended, or choose another folder with the option `cache`."
                ) from error
            # SQLITE_ERROR is one of a statement: the table is another one
            corrupt = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR"))
            cure = f"Delete it: {self._lost}." if corrupt else "Free space, or choose another folder: option `cache`."
            raise ArtifactError(f"{self._file} cannot be used, {error}. {cure}") from error


def _checksum_of(key: str, value: bytes | None, seconds: Any) -> int:
    if value is None or not isinstance(seconds, float):  # damaged
        return -1
    return zlib.crc32(struct.pack("<d", seconds), zlib.crc32(value, zlib.crc32(key.encode())))
