"""Vectors of an earlier index by the text they were computed from, so that unchanged texts are not encoded again."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from common.progress import say
from harness.indexing.index_folder import open_index
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.vector_search import VECTORS

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder


class KnownVectors:
    """Vectors of an index folder.

    Args:
        folder: The index folder; None, no dense index, a corrupt one, or one by another encoder or in another
            precision: none are known.
        encoder: Encodes the texts that are not known.
    """

    def __init__(self, folder: Path | None, encoder: "SentenceEncoder") -> None:
        self._rows: dict[bytes, int] = {}  # text -> row; about 150 bytes each
        self._vectors_ND = np.empty((0, encoder.dimensions), dtype=np.float32)
        if folder is None or not folder.exists():
            return
        try:
            index = open_index(folder, "dense")
        except UserError:
            return  # it is about to be replaced
        if (index.recipe["encoder"], index.recipe["dtype"]) != (encoder.recipe, encoder.dtype):
            return
        self._vectors_ND = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
        self._rows = {_key(indexed_text(passage)): row for row, passage in enumerate(PassageStore(folder))}
        say(f"{folder}: vectors of texts that are in this index already are taken from it.")

    def completed(self, texts: Sequence[str], encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        """Vectors of texts, float32 (N, D): the known ones, and `encode` of the others."""
        rows = [self._rows.get(_key(text)) for text in texts]
        missing = [place for place, row in enumerate(rows) if row is None]
        if len(missing) == len(texts):
            return encode(list(texts))
        vectors_ND = np.empty((len(texts), self._vectors_ND.shape[1]), dtype=np.float32)
        for place, row in enumerate(rows):
            if row is not None:
                vectors_ND[place] = self._vectors_ND[row]
        if missing:
            vectors_ND[missing] = encode([texts[place] for place in missing])
        return vectors_ND


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
