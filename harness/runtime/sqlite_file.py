"""SQLite files that several processes use at the same time, with SQLite's errors as one line that says what to do.

No write-ahead log: it does not work over a network."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.errors import ArtifactError, UserError
from common.files import create_parents

WAIT_SECONDS = 60.0  # for another process that writes
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A file with one table.

    Args:
        file: Path of the file.
        table: Name of the table.
        columns: Its columns, as in `CREATE TABLE`.
        lost: What happens after a damaged file was deleted, for error lines.
        version: Of the table's meaning.
    """

    file: Path
    table: str
    columns: str
    lost: str
    version: int

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file, which is created with its folder; one thread may use it at a time.

        Raises:
            ArtifactError: If the file is corrupt or cannot be created.
            UserError: If another process has locked it for a minute.
        """
        create_parents(self.file)
        with self.errors():
            # threads of a caller may share it, one at a time
            database = sqlite3.connect(self.file, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        with closing(database):
            with self.errors():
                database.execute("PRAGMA synchronous = FULL")  # on disk when a statement returns
                if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (self.table,)).fetchone():
                    database.execute(f"CREATE TABLE IF NOT EXISTS {self.table} ({self.columns}) WITHOUT ROWID")
            yield database

    def check_writable(self, database: sqlite3.Connection) -> None:
        """Raise ArtifactError if nothing can be stored: better before a request is made than after it."""
        with self.errors():
            database.execute(f"PRAGMA user_version = {self.version}")  # beginning a transaction alone would not fail

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors as one line with the cure."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(_DAMAGED):
                raise self.damaged(str(error)) from error
            if name.startswith("SQLITE_BUSY"):
                raise UserError(
                    f"{self.file} was locked by another process for {WAIT_SECONDS:.0f} s. Run again when it has ended, "
                    "or choose another folder with the option `cache`."
                ) from error
            cure = "Free space, then run again" if name in _FULL else "Choose another folder with the option `cache`"
            raise ArtifactError(
                f"{self.file}: cannot write or read: {error}. {cure}; `cache: null` stores nothing."
            ) from error

    def damaged(self, what: str) -> ArtifactError:
        """The error of a file that cannot be read."""
        return ArtifactError(f"{self.file} is corrupt ({what}). Delete it and run again: {self.lost}.")
