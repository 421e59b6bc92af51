"""Web cache: results of searches and texts of pages in an SQLite file, each with the time at which it came."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self

from harness.runtime.sqlite_file import SqliteFile

FILE = "web.sqlite"
_FORMAT = 1  # of keys and values; increase it when the meaning of either changes
_DAY_SECONDS = 86_400.0


class WebCache:
    """An open cache, for several threads.  Several processes may use one file at the same time; use `opened`."""

    def __init__(self, file: SqliteFile, database: sqlite3.Connection, max_age_days: float | None) -> None:
        self._file, self._database, self._lock = file, database, Lock()
        self._since = 0.0 if max_age_days is None else time.time() - max_age_days * _DAY_SECONDS

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, max_age_days: float | None) -> Iterator[Self]:
        """The cache in a folder, which is created.

        Args:
            folder: Of the file.
            max_age_days: What is older counts as absent; None for any age.

        Raises:
            ArtifactError: If the file is corrupt or cannot be created or written.
            UserError: If another process has locked it for a minute.
        """
        columns = "key TEXT PRIMARY KEY, value TEXT NOT NULL, time REAL NOT NULL"
        file = SqliteFile(
            folder / FILE, "documents", columns, "its searches and pages will be requested again", _FORMAT
        )
        with file.opened() as database:
            file.check_writable(database)
            yield cls(file, database, max_age_days)

    def find(self, key: Mapping[str, object]) -> tuple[Any, float] | None:
        """The stored value of a key (JSON types) and its time, in seconds since 1970.

        None without one that is young enough.

        Raises:
            ArtifactError: If the file is corrupt.
        """
        with self._lock, self._file.errors():
            sought = (_text(key), self._since)
            row = self._database.execute(
                "SELECT value, time FROM documents WHERE key = ? AND time >= ?", sought
            ).fetchone()
        if row is None:
            return None
        try:
            return json.loads(row[0]), float(row[1])
        except ValueError as error:
            raise self._file.damaged("a stored document is unreadable") from error

    def store(self, key: Mapping[str, object], value: object, seconds: float) -> None:
        """Store a value with its time; it is on disk when this returns.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        with self._lock, self._file.errors():
            row = (_text(key), json.dumps(value), seconds)
            self._database.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", row)


def _text(key: Mapping[str, object]) -> str:
    return json.dumps({"format": _FORMAT, **key}, sort_keys=True)
