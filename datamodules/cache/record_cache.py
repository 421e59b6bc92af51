"""The folder of stored records: each set of input files is read once and then found by the digests of its content.

    cache/questions/
        digests/        of input files, by path, size and time of change
        <digits>/       one set of records: `datamodules.cache.records`
            derived/    what was computed of all records under certain options
        numbers/        `datamodules.cache.number_store`

Small inputs are read anew at every start, and nothing is written. Everything here can be deleted at any time; a store
that no start has opened for a month is removed when another one is written.
"""

import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.files import write_atomically
from common.locks import exclusive, lock_file
from common.progress import in_bytes, say
from common.sealed_json import fingerprint
from datamodules.cache import content_digests
from datamodules.cache.checked_rows import CheckedRows, RowWriter, kept_rows, opened, rows_in_memory, write_rows
from datamodules.cache.content_digests import content_digest
from datamodules.cache.records import Records, RecordWriter
from datamodules.cache.unused_caches import remove_unused
from datamodules.formats.open_data import versions_of

DEFAULT = "cache/questions"
# Of all that is stored. Increase it when something that is stored changes for the same files and options, as
# tests/datamodules/cache/test_format.py shows: the code that computes it is no part of the key.
FORMAT = 6
RECORDS, OF_ALL_VERSIONS = f"records.{FORMAT}", "records.*"
WAIT_SECONDS = 24 * 3600.0  # for another process that stores the same files
_DIGITS = 32  # of a SHA-256 in names

Arrays = dict[str, NDArray[Any]]


class CachedRecords:
    """Records, and the place of the results computed from them.

    Args:
        rows: The records.
        name: Identifies their content, where there is a cache.
        folder: Where they are stored; None if they are in memory.
    """

    def __init__(self, rows: CheckedRows, name: str, folder: Path | None) -> None:
        self.records, self.name, self.folder = Records(rows), name, folder

    def derived(self, key: Mapping[str, Any], compute: Callable[[], Arrays]) -> Arrays:
        """Arrays computed of the records; of stored ones, read again if they were computed before.

        Args:
            key: All that they depend on beside the records, JSON types only.
            compute: Computes them.

        Raises:
            ArtifactError: If they cannot be written, or are damaged.
        """
        if self.folder is None:
            return compute()

        def write(writer: RowWriter) -> None:
            file = io.BytesIO()
            np.savez(file, **compute())  # type: ignore[arg-type]
            writer.add(file.getvalue())

        return dict(np.load(io.BytesIO(self.rows(key, "computed again", write)[0])))

    def rows(self, key: Mapping[str, Any], again: str, write: Callable[[RowWriter], object]) -> CheckedRows:
        """Rows computed of the records; of stored ones, read again if they were computed before.

        Args:
            key: All that they depend on beside the records, JSON types only.
            again: What is done again if they are damaged, for that line.
            write: Writes them.

        Raises:
            ArtifactError: If they cannot be written.
        """
        if self.folder is None:
            return rows_in_memory(write)
        libraries = [version(name) for name in ("transformers", "tokenizers")]
        name = fingerprint([self.name, key, libraries])[:_DIGITS]
        return kept_rows(self.folder / "derived" / name, again, write)


def stored(
    cache: str | None, inputs: Sequence[Path], key: Mapping[str, Any], write: Callable[[RecordWriter], Any], what: str
) -> CachedRecords:
    """Records of input files, read from the cache if it has them, else written to it.

    Args:
        cache: Folder of the cache; None keeps the records in memory.
        inputs: The files.
        key: What else the records depend on, JSON types only.
        write: Writes the records; what it returns, JSON types only, is their note.
        what: The records' name for messages, such as `training questions`.

    Raises:
        ArtifactError: If the cache cannot be written.
    """

    def write_all(rows: RowWriter) -> None:
        writer = RecordWriter(rows)
        writer.finish(write(writer))

    digests = [content_digest(file, cache) for file in inputs] if cache is not None else []
    name = fingerprint([FORMAT, digests, key, versions_of(inputs) if cache is not None else {}])[:_DIGITS]
    if cache is None or not is_large(inputs):
        return CachedRecords(rows_in_memory(write_all), name, None)
    folder = Path(cache) / name
    file = folder / RECORDS
    found = opened(file)
    if found is None:
        if lock_file(folder).exists():
            say(f"{folder}: waiting for another process that reads the same files.")
        with exclusive(folder, wait_seconds=WAIT_SECONDS):
            found = opened(file, f"the {what} are read again")  # perhaps by another process in the meantime
            if found is None:
                write_atomically(file, lambda temporary: write_rows(temporary, write_all))
                found = CheckedRows(file)
                say(
                    f"{what}: {in_bytes(file.stat().st_size)} stored in {folder}, which later starts read; it can be "
                    "deleted at any time"
                )
                _remove_others(folder.parent)
    with suppress(OSError):  # a cache that may only be read
        os.utime(folder)
    return CachedRecords(found, name, folder)


def is_large(inputs: Sequence[Path]) -> bool:
    """Whether files are too large for every process to read them anew."""
    return sum(file.stat().st_size for file in inputs) >= content_digests.SMALL_BYTES


def _remove_others(root: Path) -> None:
    """Remove the stores that are unused, and say it if another version wrote some: they are not read."""
    if any(file.name != RECORDS for file in root.glob(f"*/{OF_ALL_VERSIONS}")):
        say(f"{root} holds stores of another version: they are not read, and the same files are stored anew.")
    remove_unused(root, OF_ALL_VERSIONS)
