"""Response cache: successful replies of language models in an SQLite file, by a hash of everything that determines them.

SQLite instead of the project's journal: replies are looked up one by one, and a journal is read into memory whole, 4 GB for
100,000 replies of 10,000 tokens.  With SQLite a reply takes 0.6 ms to be on disk and 10 microseconds to be found (journal: 1.0
ms with its lock; 3,000 replies of 300 characters, one core, local disk).  No write-ahead log: it does not work over a network.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Self

from common.chat import Reply
from common.errors import ArtifactError, UserError
from common.files import create_parents

FILE = "replies.sqlite"
_FORMAT = 1  # of keys and stored replies; increase it when the meaning of either changes
_WAIT_SECONDS = 60.0  # for another process that writes
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")


def key_of(request: Mapping[str, object]) -> str:
    """SHA-256, in hexadecimal, of a request (JSON types only) and the version of the stored form."""
    text = json.dumps({"format": _FORMAT, **request}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class ResponseCache:
    """An open cache.  Several processes may use one file at the same time; use `opened`."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        self.file, self._database = file, database

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        """The cache in a folder, which is created.

        Raises:
            ArtifactError: If the file is corrupt or cannot be created.
            UserError: If another process has locked it for a minute.
        """
        file = folder / FILE
        create_parents(file)
        with _errors(file):
            # one connection is used by one thread at a time; the event loop may run in another thread than the caller
            database = sqlite3.connect(file, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        with closing(database):
            with _errors(file):
                database.execute("PRAGMA synchronous = FULL")  # on disk when a statement returns
                if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'replies'").fetchone():
                    database.execute(
                        "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
                    )
            yield cls(file, database)

    def find(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The stored replies, by key.

        Raises:
            ArtifactError: If the file is corrupt.
        """
        found = {}
        with _errors(self.file):
            for key in keys:
                row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
                if row:
                    try:
                        found[key] = Reply(**json.loads(row[0]), cached=True)
                    except (ValueError, TypeError) as error:
                        raise _damaged(self.file, f"reply {key[:12]} is unreadable") from error
        return found

    def check_writable(self) -> None:
        """Raise ArtifactError if nothing can be stored: better before a request is paid for than after it."""
        with _errors(self.file):
            self._database.execute(f"PRAGMA user_version = {_FORMAT}")  # beginning a transaction alone would not fail

    def store(self, key: str, reply: Reply) -> None:
        """Store a successful reply; it is on disk when this returns.  A reply that another process stored first stays.

        Raises:
            ArtifactError: If the disk is full, or the file cannot be written or is corrupt.
        """
        stored = {name: value for name, value in asdict(reply).items() if name not in ("error", "cached")}
        with _errors(self.file):
            self._database.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(stored)))


@contextmanager
def _errors(file: Path) -> Iterator[None]:
    """SQLite's errors as one line with the cure."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(_DAMAGED):
            raise _damaged(file, str(error)) from error
        if name.startswith("SQLITE_BUSY"):
            raise UserError(
                f"{file} was locked by another process for {_WAIT_SECONDS:.0f} s. Run again when it has ended, or choose "
                "another folder with the option `cache`."
            ) from error
        cure = "Free space, then run again" if name in _FULL else "Choose another folder with the option `cache`"
        raise ArtifactError(f"{file}: cannot write or read: {error}. {cure}; `cache: null` stores nothing.") from error


def _damaged(file: Path, what: str) -> ArtifactError:
    return ArtifactError(f"{file} is corrupt ({what}). Delete it and run again: its replies will be requested again.")
