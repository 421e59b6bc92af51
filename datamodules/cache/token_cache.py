"""Token ids of many texts in one file: written once in the order of the texts, and read one text at a time."""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import ArtifactError
from common.files import is_sealed, seal, whole_folder
from common.progress import Progress, say
from datamodules.cache.record_cache import CachedRecords

Tokenize = Callable[[Sequence[str]], Sequence[Sequence[int]]]

TEXTS_PER_BATCH = 4096
_IDS, _ENDS = "ids.bin", "ends.npy"  # the ends of the rows, and their checksums
_PARALLEL = "TOKENIZERS_PARALLELISM"


class TokenCache:
    """Token ids by row.  In another process a copy opens the file again.

    Args:
        ends: How many ids there are up to the end of each row, after a leading 0.
        ids: Of all rows one after the other, or the file that holds them.
        dtype: Of the ids.
        checksums: CRC-32 of each row's bytes in the file.
    """

    def __init__(
        self,
        ends: NDArray[np.int64],
        ids: NDArray[np.unsignedinteger] | Path,
        dtype: np.dtype,
        checksums: NDArray[np.int64] | None = None,
    ) -> None:
        self._ends, self._dtype = ends, dtype
        self._ids = None if isinstance(ids, Path) else ids
        self._file = os.open(ids, os.O_RDONLY) if isinstance(ids, Path) else None
        self._again = (ends, ids, dtype, checksums)

    def __reduce__(self) -> tuple[type["TokenCache"], Any]:
        return TokenCache, self._again

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every row."""
        return np.diff(self._ends)

    def __getitem__(self, row: int) -> list[int]:
        start, end = int(self._ends[row]), int(self._ends[row + 1])
        if self._ids is not None:
            return self._ids[start:end].tolist()
        size = self._dtype.itemsize  # read, not mapped: what was read once does not stay in this process's memory
        data = os.pread(self._file, (end - start) * size, start * size)  # type: ignore[arg-type]
        _, ids, _, checksums = self._again
        if checksums is not None and zlib.crc32(data) != checksums[row]:
            assert isinstance(ids, Path)
            raise ArtifactError(
                f"{ids} is damaged: row {row}. Remove {ids.parent} and type the same command again: the texts are "
                "tokenized anew."
            )
        return np.frombuffer(data, self._dtype).tolist()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            os.close(self._file)  # type: ignore[arg-type]


def token_rows(
    store: CachedRecords, key: Mapping[str, Any], texts: Iterable[str], total: int, tokenize: Tokenize, vocabulary: int
) -> TokenCache:
    """Token ids of texts that are made of stored records.

    From an earlier start, or tokenized now and stored beside the records.

    Args:
        store: The records; texts of records in memory are kept in memory.
        key: All that the token ids depend on beside the records, JSON types only.
        texts: The texts, which are only read if they are to be tokenized.
        total: Their number.
        tokenize: Texts -> token ids.
        vocabulary: Number of token ids.

    Raises:
        ArtifactError: If they cannot be stored.
    """
    dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)
    if store.folder is None:
        found = list(_batches(texts, total, tokenize, dtype))
        ids = np.concatenate([np.empty(0, dtype), *(ids for ids, _ in found)])
        return TokenCache(_ends([lengths for _, lengths in found]), ids, dtype)
    folder = store.place(key)
    try:
        return _read(folder, dtype)
    except (OSError, ValueError, EOFError) as error:  # not there yet, or damaged
        if not isinstance(error, FileNotFoundError):
            say(f"{folder} is damaged: the texts are tokenized again.")
        with whole_folder(folder) as temporary:
            lengths, checksums = [], [0]
            with (temporary / _IDS).open("wb") as file:
                for ids, of_batch in _batches(texts, total, tokenize, dtype):
                    file.write(ids.tobytes())
                    lengths.append(of_batch)
                    checksums += (zlib.crc32(row.tobytes()) for row in np.split(ids, of_batch.cumsum()[:-1]))
            np.save(temporary / _ENDS, np.stack([_ends(lengths), np.array(checksums, np.int64)]))
            seal(temporary / _ENDS)
        return _read(folder, dtype)


def _read(folder: Path, dtype: np.dtype) -> TokenCache:
    size = (folder / _IDS).stat().st_size
    if not is_sealed(folder / _ENDS):
        raise ValueError(f"{folder / _ENDS} has another sha256")
    ends, checksums = np.load(folder / _ENDS)
    if size != int(ends[-1]) * dtype.itemsize:
        raise ValueError(f"{folder / _IDS} has {size} bytes, not {int(ends[-1]) * dtype.itemsize}")
    return TokenCache(ends, folder / _IDS, dtype, checksums[1:])


def _batches(
    texts: Iterable[str], total: int, tokenize: Tokenize, dtype: np.dtype
) -> Iterator[tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]]:
    with Progress("tokenizing texts", total) as progress, _all_cores():
        remaining = iter(texts)
        while batch := list(islice(remaining, TEXTS_PER_BATCH)):
            rows = tokenize(batch)
            lengths = np.array([len(row) for row in rows], np.int64)
            yield np.fromiter((token for row in rows for token in row), dtype, int(lengths.sum())), lengths
            progress.advance(len(batch))


def _ends(lengths: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()


@contextmanager
def _all_cores() -> Iterator[None]:
    """Let the tokenizers library use a thread per core.

    Training forbids it, since there each rank has its own cores.
    """
    before = os.environ.get(_PARALLEL)
    os.environ[_PARALLEL] = "true"
    try:
        yield
    finally:
        os.environ.pop(_PARALLEL)
        if before is not None:
            os.environ[_PARALLEL] = before
