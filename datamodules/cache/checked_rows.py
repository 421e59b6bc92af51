"""A file of rows of bytes: written in their order, read one at a time, each checked when it is read.

Each row is followed by the CRC-32 of its bytes. The last row says where the others end: int64, from 0.
A row is read, and not mapped, so that what a process has read once does not stay in its memory. Arrow and NumPy files
would do but for flipped bits: they have no checksums.
"""

import io
import os
import weakref
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ArtifactError
from common.files import write_atomically
from common.progress import say
from datamodules.cache.unused_caches import hold

CRC_BYTES = 4
_CURE = "Remove that file and type the same command again: it is made anew."


def checked(row: bytes) -> bytes:
    """A row with its checksum."""
    return row + zlib.crc32(row).to_bytes(CRC_BYTES, "little")


def unchecked(row: bytes) -> bytes | None:
    """The row that `checked` was given; None if it has changed since."""
    content, checksum = row[:-CRC_BYTES], row[-CRC_BYTES:]
    return content if checksum == zlib.crc32(content).to_bytes(CRC_BYTES, "little") else None


class RowWriter:
    """Writes rows to a file.

    Args:
        file: Opened for writing.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._ends = file, array("q", [0])

    def add(self, row: bytes) -> None:
        """Append a row."""
        self._ends.append(self._ends[-1] + self._file.write(checked(row)))

    def finish(self) -> None:
        """Append the row that makes the file whole."""
        self._file.write(checked(self._ends.tobytes()))


class CheckedRows:
    """The rows of a file, which is kept from being removed as long as they are.

    A copy in another process opens the file again.

    Args:
        source: The file, or its content.

    Raises:
        FileNotFoundError: If there is none.
        ArtifactError: If it is not whole.
    """

    def __init__(self, source: Path | bytes) -> None:
        self._source = source
        if isinstance(source, Path):
            self._file = os.open(source, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
            hold(self._file)
        size = len(source) if isinstance(source, bytes) else os.fstat(self._file).st_size
        start = int.from_bytes(self._read(max(0, size - CRC_BYTES - 8), size)[:8], "little")  # the last of the ends
        ends = unchecked(self._read(start, size)) if start < size else None
        if not ends:
            raise ArtifactError(f"{self.name} is damaged: it is not whole. {_CURE}")
        self._ends = np.frombuffer(ends, np.int64)

    @property
    def name(self) -> str:
        """The file."""
        return str(self._source) if isinstance(self._source, Path) else "memory"

    def __reduce__(self) -> tuple[type[Self], tuple[Path | bytes]]:
        return type(self), (self._source,)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of every row."""
        return np.diff(self._ends) - CRC_BYTES

    def __getitem__(self, row: int) -> bytes:
        """A row.

        Raises:
            ArtifactError: If it has changed.
        """
        content = unchecked(self._read(int(self._ends[row]), int(self._ends[row + 1])))
        if content is None:
            raise ArtifactError(f"{self.name} is damaged: row {row}. {_CURE}")
        return content

    def _read(self, start: int, end: int) -> bytes:
        if isinstance(self._source, bytes):
            return self._source[start:end]
        parts = [os.pread(self._file, end - start, start)]
        while parts[-1] and (got := sum(map(len, parts))) < end - start:  # one call reads 2 GiB at most
            parts.append(os.pread(self._file, end - start - got, start + got))
        return b"".join(parts)


def opened(file: Path, again: str = "") -> CheckedRows | None:
    """The rows of a file; None where there is none.

    None as well where it is damaged, which is said together with what is done `again` for that.
    """
    try:
        return CheckedRows(file)
    except FileNotFoundError:
        return None
    except (OSError, ArtifactError):
        if again:
            say(f"{file} is damaged: {again}.")
        return None


def kept_rows(file: Path, again: str, write: Callable[[RowWriter], object]) -> CheckedRows:
    """The rows of a file, which is written if there is none or it is damaged.

    Args:
        file: The file.
        again: What is done again if it is damaged, for that line.
        write: Writes the rows.

    Raises:
        ArtifactError: If they cannot be written.
    """
    if (found := opened(file, again)) is not None:
        return found
    write_atomically(file, lambda temporary: write_rows(temporary, write))
    return CheckedRows(file)


def write_rows(file: Path, write: Callable[[RowWriter], object]) -> None:
    """Write a file of rows."""
    with file.open("wb") as stream:
        _write(stream, write)


def rows_in_memory(write: Callable[[RowWriter], object]) -> CheckedRows:
    """The same rows without a file."""
    content = io.BytesIO()
    _write(content, write)
    return CheckedRows(content.getvalue())


def _write(stream: BinaryIO, write: Callable[[RowWriter], object]) -> None:
    writer = RowWriter(stream)
    write(writer)
    writer.finish()
