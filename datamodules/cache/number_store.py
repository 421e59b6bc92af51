"""Numbers that take long to compute, by key: each process appends what it computes, and finds what others computed.

    cache/questions/numbers/<digits>/<random>.bin    rows of a key, its number and a checksum, all of one length

A row that a killed process wrote in part, or that is damaged, is computed again. Everything here can be deleted at
any time.
"""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from common.errors import ArtifactError
from common.files import write_errors
from common.progress import say
from datamodules.cache.checked_rows import CRC_BYTES, checked, unchecked

FOLDER = "numbers"  # in a cache
_ROW = struct.Struct("<Qd")  # key, number
_ROW_BYTES = _ROW.size + CRC_BYTES


class NumberStore:
    """Numbers by 64-bit key, shared by the processes that name the same folder.

    Args:
        folder: Where they are kept; None keeps them in this process's memory alone.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._numbers: dict[int, float] = {}
        self._read: dict[Path, int] = {}  # bytes read of each file
        self._own: Path | None = None  # file that it writes

    def found(self, keys: Sequence[int]) -> list[float | None]:
        """The number of each key; None for one that no process has written."""
        if any(key not in self._numbers for key in keys):
            self._read_others()
        return [self._numbers.get(key) for key in keys]

    def add(self, numbers: Mapping[int, float]) -> None:
        """Write numbers.

        Raises:
            ArtifactError: If they cannot be written.
        """
        self._numbers.update(numbers)
        if self.folder is None or not numbers:
            return
        with write_errors(self.folder):
            if self._own is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._own = self.folder / f"{uuid4().hex}.bin"
                self._read[self._own] = 1 << 62  # its own are known
            with self._own.open("ab", buffering=0) as file:
                file.write(b"".join(checked(_ROW.pack(*each)) for each in numbers.items()))

    def _read_others(self) -> None:
        for file in sorted(self.folder.glob("*.bin")) if self.folder is not None else ():
            start = self._read.get(file, 0)
            try:
                if file.stat().st_size < start + _ROW_BYTES:
                    continue
                with file.open("rb") as stream:
                    stream.seek(start)
                    data = stream.read()
            except OSError as error:
                raise ArtifactError(f"{file} cannot be read ({error}): remove it, and type the same again.") from error
            whole = len(data) - len(data) % _ROW_BYTES
            rows = [unchecked(data[place : place + _ROW_BYTES]) for place in range(0, whole, _ROW_BYTES)]
            self._numbers.update(_ROW.unpack(row) for row in rows if row is not None)
            if damaged := rows.count(None):
                say(f"{file}: {damaged} damaged numbers are computed again.")
            self._read[file] = start + whole
