"""Numbers that take long to compute, by key: each process appends what it computes, and finds what others computed.

    cache/questions/numbers/<digits>/<random>.bin    records of a key, its number and a checksum

A record that a killed process wrote in part, or that is damaged, is computed again. Everything here can be deleted at
any time.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from common.errors import ArtifactError
from common.files import write_errors
from common.progress import say

FOLDER = "numbers"  # in a cache
_RECORD = struct.Struct("<QdI")  # key, number, CRC-32 of both
_CHECKED = struct.Struct("<Qd")


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
                file.write(b"".join(_record(key, number) for key, number in numbers.items()))

    def _read_others(self) -> None:
        for file in sorted(self.folder.glob("*.bin")) if self.folder is not None else ():
            start = self._read.get(file, 0)
            try:
                if file.stat().st_size < start + _RECORD.size:
                    continue
                with file.open("rb") as stream:
                    stream.seek(start)
                    data = stream.read()
            except OSError as error:
                raise ArtifactError(f"{file} cannot be read ({error}): remove it, and type the same again.") from error
            whole = len(data) - len(data) % _RECORD.size
            damaged = 0
            for key, number, checksum in _RECORD.iter_unpack(data[:whole]):
                if checksum == zlib.crc32(_CHECKED.pack(key, number)):
                    self._numbers[key] = number
                else:
                    damaged += 1
            if damaged:
                say(f"{file}: {damaged} damaged numbers are computed again.")
            self._read[file] = start + whole


def _record(key: int, number: float) -> bytes:
    return _RECORD.pack(key, number, zlib.crc32(_CHECKED.pack(key, number)))
