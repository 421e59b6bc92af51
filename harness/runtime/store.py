"""Values by key in an SQLite file, such as replies of language models and pages of the web, each with its time.

SQLite instead of the project's journal: values are looked up one by one, and a journal is read into memory whole, 4 GB
for 100,000 replies of 10,000 tokens. With SQLite a reply takes 0.6 ms to be on disk and 10 microseconds to be found
(journal: 1.0 ms with its lock; 3,000 replies of 300 characters, one core, local disk). No write-ahead log: it does not
work over a network.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self

from common.errors import ArtifactError, UserError
from common.files import create_parents, write_errors

WAIT_SECONDS = 60.0  # for another process that writes
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")
_DAY_SECONDS = 86_400.0


class Store:
    """A file that several processes may use at the same time; within `with`, several threads may find and store.

    Args:
        file: Path of the file, which is created with its folder.
        lost: What happens after a damaged file was deleted, for error lines.
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
        self._database = database
        try:
            with self._errors():
                database.execute("PRAGMA synchronous = FULL")  # on disk when a statement returns
                if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'documents'").fetchone():
                    columns = "key TEXT PRIMARY KEY, value TEXT NOT NULL, time REAL NOT NULL"
                    database.execute(f"CREATE TABLE IF NOT EXISTS documents ({columns}) WITHOUT ROWID")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # a thread may still be about to store
            assert self._database is not None
            self._database.close()
            self._database = None

    def check_writable(self) -> None:
        """Raise ArtifactError if nothing can be stored: better before a request is paid for than after it."""
        with self._lock, self._errors():
            if self._database:
                self._database.execute("PRAGMA user_version = 1")  # beginning a transaction alone would not fail

    def find(self, key: str) -> tuple[Any, float] | None:
        """The stored value of a key and its time, in seconds since 1970; None without one that is young enough.

        Raises:
            ArtifactError: If the file is corrupt.
        """
        with self._lock, self._errors():
            assert self._database is not None
            query = "SELECT value, time FROM documents WHERE key = ? AND time >= ?"
            row = self._database.execute(query, (key, self._since)).fetchone()
        if row is None:
            return None
        try:
            return json.loads(row[0]), float(row[1])
        except ValueError as error:
            raise self._damaged("a stored value is unreadable") from error

    def store(self, key: str, value: object, seconds: float | None = None) -> None:
        """Store a value (JSON types) with its time, now when None; it is on disk when this returns.

        One that another process stored first stays, unless it is too old. Nothing is stored after the end of `with`, as
        by an interruption.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        row = (key, json.dumps(value), time.time() if seconds is None else seconds, self._since)
        with self._lock, self._errors():
            if self._database:
                self._database.execute(
                    "INSERT INTO documents VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
                    "time = excluded.time WHERE documents.time < ?",
                    row,
                )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors as one line with the cure."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(_DAMAGED):
                raise self._damaged(str(error)) from error
            if name.startswith("SQLITE_BUSY"):
                raise UserError(
                    f"{self._file} was locked by another process for {WAIT_SECONDS:.0f} s. Run again when it has "
                    "ended, or choose another folder with the option `cache`."
                ) from error
            cure = "Free space, then run again" if name in _FULL else "Choose another folder with the option `cache`"
            raise ArtifactError(
                f"{self._file}: cannot write or read: {error}. {cure}; `cache: null` stores nothing."
            ) from error

    def _damaged(self, what: str) -> ArtifactError:
        return ArtifactError(f"{self._file} is corrupt ({what}). Delete it and run again: {self._lost}.")
