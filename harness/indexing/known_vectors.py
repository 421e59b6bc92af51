"""Vectors by the text they were computed from, of an earlier index or an unfinished build: no text is encoded twice."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
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

KEY = "S16"  # of a text: its hash

Part = tuple[np.ndarray, Callable[[], np.ndarray]]  # keys (N,), and what opens their vectors, float32 (N, D)


def text_keys(texts: Iterable[str], count: int = -1) -> np.ndarray:
    """A hash of each text, (N,) of `KEY`; `count` is N where the texts are a stream."""
    keys = (blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.fromiter(keys, dtype=KEY, count=count)


class KnownVectors:
    """Vectors by the keys of their texts.

    Args:
        parts: Vectors are opened when one is asked for, not all at once: a file each is more than a process may open.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        keys_N = np.concatenate([np.empty(0, KEY), *(keys for keys, _ in parts)])
        self._rows_N = np.argsort(keys_N, kind="stable")  # in the order of the keys; with these 24 bytes a text
        self._keys_N = keys_N[self._rows_N]
        self._open = [opened for _, opened in parts]
        self._starts = np.cumsum([0, *(len(keys) for keys, _ in parts)])

    def has(self, keys_N: np.ndarray) -> np.ndarray:
        """Which keys are known, bool (N,)."""
        places_N = np.searchsorted(self._keys_N, keys_N)
        known_N = places_N < len(self._keys_N)
        known_N[known_N] = self._keys_N[places_N[known_N]] == keys_N[known_N]
        return known_N

    def of(self, keys_N: np.ndarray) -> np.ndarray:
        """The vectors of N keys, at least one, that are all known: float32 (N, D)."""
        rows_N = self._rows_N[np.searchsorted(self._keys_N, keys_N)]
        parts_N = np.searchsorted(self._starts, rows_N, side="right") - 1
        found = [self._open[part]()[rows_N[parts_N == part] - self._starts[part]] for part in np.unique(parts_N)]
        vectors_ND = np.concatenate(found)  # part by part
        vectors_ND[np.argsort(parts_N, kind="stable")] = vectors_ND.copy()
        return vectors_ND


def vectors_of_index(folder: Path, encoder: "SentenceEncoder") -> list[Part]:
    """The vectors of an index folder.

    Args:
        folder: One that does not exist, no dense index, a corrupt one, or one by another encoder or in another
            precision has none.
        encoder: By which they must be.
    """
    if not folder.exists():
        return []
    try:
        index = open_index(folder, "dense", "full")  # every byte: what is taken from it is sealed again
    except UserError:
        return []  # it is about to be replaced
    if (index.recipe["encoder"], index.recipe["dtype"]) != (encoder.recipe, encoder.dtype):
        return []
    passages = track(PassageStore(folder), index.passages, f"reading the texts of {folder}")
    return [(text_keys(map(indexed_text, passages), index.passages), partial(open_vectors, folder))]
