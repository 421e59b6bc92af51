"""Vectors by the text they were computed from, of an earlier index or build: unchanged texts are not encoded again."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from common.progress import track
from harness.indexing.index_folder import open_index
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.vector_search import open_vectors

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder

KEY_BYTES = 16  # of a text's hash


def text_keys(texts: Iterable[str], count: int = -1) -> np.ndarray:
    """A hash of each text, (N,) of `KEY_BYTES` bytes; `count` is N where the texts are a stream."""
    keys = (blake2b(text.encode(), digest_size=KEY_BYTES).digest() for text in texts)
    return np.fromiter(keys, dtype=f"S{KEY_BYTES}", count=count)


class KnownVectors:
    """Vectors of an index folder, and of chunks of an unfinished build.

    Args:
        folder: The index folder; one that does not exist, no dense index, a corrupt one, or one by another encoder or
            in another precision: none of its vectors are known.
        encoder: Encodes the texts that are not known.
        chunks: Keys and vectors of texts that this encoder has encoded, [(N,), float32 (N, D)].
    """

    def __init__(
        self, folder: Path, encoder: "SentenceEncoder", chunks: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    ) -> None:
        parts = [*_of_index(folder, encoder), *chunks]
        keys_N = np.concatenate([np.empty(0, f"S{KEY_BYTES}"), *(keys for keys, _ in parts)])
        self._rows_N = np.argsort(keys_N, kind="stable")  # in the order of the keys; with these 40 bytes a text
        self._keys_N = keys_N[self._rows_N]
        self._vectors = [vectors_ND for _, vectors_ND in parts]
        self._starts = np.cumsum([0, *map(len, self._vectors)])

    def __len__(self) -> int:
        return len(self._keys_N)

    def completed(self, texts: Sequence[str], encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        """Vectors of texts, float32 (N, D): the known ones, and `encode` of the others."""
        keys_N = text_keys(texts)
        places_N = np.searchsorted(self._keys_N, keys_N)
        known_N = places_N < len(self)
        known_N[known_N] = self._keys_N[places_N[known_N]] == keys_N[known_N]
        if not known_N.any():
            return encode(list(texts))
        vectors_ND = np.empty((len(texts), self._vectors[0].shape[1]), dtype=np.float32)
        if not known_N.all():
            vectors_ND[~known_N] = encode([texts[place] for place in np.flatnonzero(~known_N).tolist()])
        wanted = np.flatnonzero(known_N)
        rows = self._rows_N[places_N[wanted]]
        parts = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(parts):
            of_part = parts == part
            vectors_ND[wanted[of_part]] = self._vectors[part][rows[of_part] - self._starts[part]]
        return vectors_ND


def _of_index(folder: Path, encoder: "SentenceEncoder") -> list[tuple[np.ndarray, np.ndarray]]:
    if not folder.exists():
        return []
    try:
        index = open_index(folder, "dense", "full")  # every byte: what is taken from it is sealed again
    except UserError:
        return []  # it is about to be replaced
    if (index.recipe["encoder"], index.recipe["dtype"]) != (encoder.recipe, encoder.dtype):
        return []
    passages = track(PassageStore(folder), index.passages, f"reading the texts of {folder}")
    return [(text_keys(map(indexed_text, passages), index.passages), open_vectors(folder))]
