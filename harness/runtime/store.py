"""Values by key in an SQLite file, such as replies of language models and pages of the web, each with its time.

SQLite instead of the project's journal: values are looked up one by one, and a journal is read into memory whole, 4 GB
for 100,000 replies of 10,000 tokens. With SQLite a reply takes 0.6 ms to be on disk and 10 microseconds to be found
(journal: 1.0 ms with its lock; 3,000 replies of 300 characters, one core, local disk). No write-ahead log: it does not
work over a network.

Each value has a checksum, of its key, itself and its time. Damaged ones are dropped, and a line says so. The first time
that a process finds no value for a key, it checks all values: only so a damaged key is found.
"""

import json
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

from common.errors import ArtifactError, UserError
from common.files import create_parents, write_errors
from common.progress import say

WAIT_SECONDS = 60.0  # for another process that writes
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")
_DAY_SECONDS = 86_400.0
_CHECKSUM = "checksum_of(CAST(key AS BLOB), CAST(value AS BLOB), time)"
_WHOLE = f"checksum = {_CHECKSUM} AND typeof(key) = 'text'"
_TABLE = (
    "CREATE TABLE documents (key TEXT PRIMARY KEY, value TEXT NOT NULL, time REAL NOT NULL, checksum INTEGER) "
    "WITHOUT ROWID"
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

    _checked: ClassVar[set[Path]] = set()  # files of which this process has checked all values

    def __enter__(self) -> Self:
        create_parents(self._file)
        with self._errors(), write_errors(self._file):
            if not self._file.exists():
                self._file.touch()  # with the rights of the umask, of which SQLite would leave out the group's to write
            database = sqlite3.connect(self._file, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        self._database = database
        try:
            with self._errors():
                database.text_factory = bytes  # damaged texts may be no UTF-8
                database.create_function("checksum_of", 3, _checksum_of)
                database.execute("PRAGMA synchronous = FULL")  # on disk when a statement returns
                if not _tables(database):
                    database.execute(_TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
                if _tables(database) != [_TABLE.encode()]:
                    raise self._damaged("it has another table")
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
            row = self._row(self._database, key)
            if not self._is_whole(key, row) and (row or self._file not in self._checked):
                self._repair(self._database)
                row = self._row(self._database, key)
        if row is None or row[2] < self._since:
            return None
        return json.loads(row[1]), row[2]

    def store(self, key: str, value: object, seconds: float | None = None) -> None:
        """Store a value (JSON types) with its time, now when None; it is on disk when this returns.

        One that another process stored first stays, unless it is too old. Nothing is stored after the end of `with`, as
        by an interruption.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        text, stored = json.dumps(value), float(time.time() if seconds is None else seconds)
        row = key, text, stored, _checksum_of(key.encode(), text.encode(), stored), self._since
        with self._lock, self._errors():
            if self._database:
                self._database.execute(
                    "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
                    "time = excluded.time, checksum = excluded.checksum WHERE documents.time < ?",
                    row,
                )

    def _row(self, database: sqlite3.Connection, key: str) -> tuple[Any, ...] | None:
        query = "SELECT key, value, time, checksum FROM documents WHERE key = ?"
        row: tuple[Any, ...] | None = database.execute(query, (key,)).fetchone()
        return row

    def _is_whole(self, key: str, row: tuple[Any, ...] | None) -> bool:
        return row is not None and (row[0], _checksum_of(*row[:3])) == (key.encode(), row[3])

    def _repair(self, database: sqlite3.Connection) -> None:
        """Check all values and their order, once in a process or when one is damaged; drop the damaged ones."""
        self._checked.add(self._file)
        keys = [key for (key,) in database.execute(f"SELECT CAST(key AS BLOB) FROM documents WHERE {_WHOLE}")]
        (count,) = database.execute("SELECT count(*) FROM documents").fetchone()
        if len(keys) == count and all(one < other for one, other in pairwise(keys)):
            return
        database.execute("BEGIN IMMEDIATE")
        database.execute(f"CREATE TEMP TABLE whole AS SELECT * FROM documents WHERE {_WHOLE}")
        database.execute("DELETE FROM documents")
        kept = database.execute("INSERT OR IGNORE INTO documents SELECT * FROM whole").rowcount
        database.execute("DROP TABLE whole")
        database.execute("COMMIT")
        say(f"{self._file} was damaged: {count - kept:,} of {count:,} values were dropped: {self._lost}.")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors as one line with the cure."""
        try:
            yield
        except UnicodeDecodeError as error:  # in the text of an error
            raise self._damaged("its table is unreadable") from error
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


def _tables(database: sqlite3.Connection) -> list[bytes]:
    """How the tables were made."""
    return [row[0] for row in database.execute("SELECT sql FROM sqlite_master")]


def _checksum_of(key: bytes, value: bytes, seconds: Any) -> int:
    if not isinstance(seconds, float):  # damaged
        return -1
    return zlib.crc32(struct.pack("<d", seconds), zlib.crc32(value, zlib.crc32(key)))
