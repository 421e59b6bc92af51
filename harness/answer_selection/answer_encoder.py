"""Cosine similarity of short answers by a sentence encoder.

Shape legend: A texts of one question, N new texts, D dimensions.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.records import nfkc
from models.pretrained import MINILM

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder

MAX_KNOWN = 100_000  # texts whose vectors are kept for further calls: 0.3 GB at 384 dimensions


class AnswerEncoder:
    """Cosines between texts; equal texts are encoded once, in all calls, so that they have exactly the same cosines.

    Args:
        name: Folder or hub id of a sentence encoder, or of a BERT, whose token vectors are then averaged.
        device: auto, cpu or cuda.

    Raises:
        MissingInputError: If the encoder is not found.
        UserError: If it is not supported.
    """

    def __init__(self, name: str = MINILM, device: str = "auto") -> None:
        self.name, self.device = name, device
        self._known: dict[str, NDArray[np.float64]] = {}  # unit vectors (D,) by text

    def load(self) -> None:
        """Load the encoder."""
        _ = self._encoder

    @cached_property
    def _encoder(self) -> "SentenceEncoder":
        from harness.indexing.sentence_encoder import SentenceEncoder

        return SentenceEncoder(self.name, self.device, precision="fp32")

    @property
    def recipe(self) -> str:
        """sha256 of the encoder's settings and files."""
        return str(self._encoder.recipe["sha256"])

    def cosines(self, groups: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """The (A, A) cosines of every group's texts, rounded to six decimals, so that batches do not break ties."""
        cleaned = [[nfkc(text) for text in group] for group in groups]
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        new = [text for text in dict.fromkeys(text for group in cleaned for text in group) if text not in self._known]
        if new:
            vectors_ND = self._encoder.encode_passages(new).astype(np.float64)
            lengths_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
            self._known |= dict(zip(new, vectors_ND / np.where(lengths_N1 > 0, lengths_N1, 1.0), strict=True))
        rows = [np.stack([self._known[text] for text in group]) if group else np.zeros((0, 1)) for group in cleaned]
        return [np.round(each_AD @ each_AD.T, 6) for each_AD in rows]
