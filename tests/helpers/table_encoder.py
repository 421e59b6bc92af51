"""An encoder of answers whose vectors are written down, so that cosines can be worked out by hand."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class TableEncoder:
    """Cosines between vectors of a table.

    Args:
        vectors: By text.
    """

    name = "table"
    recipe = "0" * 64

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors

    def cosines(self, groups: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """As `harness.answer_selection.answer_encoder.AnswerEncoder`."""
        found = []
        for group in groups:
            width = len(next(iter(self.vectors.values())))
            rows = np.array([self.vectors[text] for text in group], dtype=np.float64).reshape(len(group), width)
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            found.append(np.round(rows @ rows.T, 6))
        return found
