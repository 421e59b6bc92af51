"""Response cache: language models' successful replies in an SQLite file, by a hash of all that determines them.

SQLite instead of the project's journal: replies are looked up one by one, and a journal is read into memory whole, 4 GB
for 100,000 replies of 10,000 tokens. With SQLite a reply takes 0.6 ms to be on disk and 10 microseconds to be found
(journal: 1.0 ms with its lock; 3,000 replies of 300 characters, one core, local disk).
"""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Self

from common.chat import Reply
from harness.runtime.sqlite_file import SqliteFile

FILE = "replies.sqlite"
_FORMAT = 2  # of keys and stored replies; increase it when the meaning of either changes


def key_of(request: Mapping[str, object]) -> str:
    """SHA-256, in hexadecimal, of a request (JSON types only) and the version of the stored form."""
    text = json.dumps({"format": _FORMAT, **request}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class ResponseCache:
    """An open cache; use `opened`.  Several processes may use one file at the same time, several threads may store."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        self._file, self._database = _table(file), database
        self._lock, self._open = threading.Lock(), True

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        """The cache in a folder, which is created.

        Raises:
            ArtifactError: If the file is corrupt or cannot be created.
            UserError: If another process has locked it for a minute.
        """
        with _table(folder / FILE).opened() as database:
            cache = cls(folder / FILE, database)
            try:
                yield cache
            finally:  # a thread may still be about to store
                with cache._lock:
                    cache._open = False

    def find(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The stored replies, by key.

        Raises:
            ArtifactError: If the file is corrupt.
        """
        found = {}
        with self._file.errors():
            for key in keys:
                row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
                if row:
                    try:
                        found[key] = Reply(**json.loads(row[0]), cached=True)
                    except (ValueError, TypeError) as error:
                        raise self._file.damaged(f"reply {key[:12]} is unreadable") from error
        return found

    def check_writable(self) -> None:
        """Raise ArtifactError if nothing can be stored: better before a request is paid for than after it."""
        self._file.check_writable(self._database)

    def store(self, key: str, reply: Reply) -> None:
        """Store a successful reply; it is on disk when this returns.  A reply that another process stored first stays.

        Nothing is stored after the cache was closed, as by an interruption.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        stored = {name: value for name, value in asdict(reply).items() if name not in ("error", "cached")}
        with self._lock, self._file.errors():
            if self._open:
                self._database.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(stored)))


def _table(file: Path) -> SqliteFile:
    columns = "key TEXT PRIMARY KEY, reply TEXT NOT NULL"
    return SqliteFile(file, "replies", columns, "its replies will be requested again", _FORMAT)
