"""Token ids of many texts in one file: written once in the order of the texts, and read one text at a time."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.progress import Progress
from datamodules.cache.checked_rows import CheckedRows, RowWriter
from datamodules.cache.record_cache import CachedRecords

Tokenize = Callable[[Sequence[str]], Sequence[Sequence[int]]]

TEXTS_PER_BATCH = 4096
_PARALLEL = "TOKENIZERS_PARALLELISM"


class TokenCache:
    """Token ids by row.

    Args:
        rows: Their bytes.
        dtype: Of the ids.
    """

    def __init__(self, rows: CheckedRows, dtype: np.dtype) -> None:
        self._rows, self._dtype = rows, dtype

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every row."""
        return self._rows.sizes // self._dtype.itemsize

    def __getitem__(self, row: int) -> list[int]:
        return np.frombuffer(self._rows[row], self._dtype).tolist()


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

    def write(writer: RowWriter) -> None:
        with Progress("tokenizing texts", total) as progress, _all_cores():
            remaining = iter(texts)
            while batch := list(islice(remaining, TEXTS_PER_BATCH)):
                for ids in tokenize(batch):
                    writer.add(np.array(ids, dtype).tobytes())
                progress.update(len(batch))

    return TokenCache(store.rows(key, "the texts are tokenized again", write), dtype)


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
