"""Cosine similarity of short answers by a sentence encoder.

Shape legend: A texts of one question, N distinct texts, D dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.checks import Precision
from common.records import clean
from harness.indexing.sentence_encoder import SentenceEncoder, encoder_memory
from harness.runtime.memory_needs import Machine, Need
from models.pretrained import MINILM

ANSWER_TOKENS = 64  # of an answer, at most, where memory is planned


class AnswerEncoder:
    """Cosines between texts; equal texts are encoded once, so that they have exactly the same cosines.

    Args:
        name: Folder or hub id of a sentence encoder, or of a BERT, whose token vectors are then averaged.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        MissingInputError: If the encoder is not found.
        UserError: If it is not supported.
    """

    def __init__(self, name: str = MINILM, device: str = "auto", precision: Precision = "fp32") -> None:
        self.name, self._encoder = name, SentenceEncoder(name, device, precision=precision)

    @property
    def recipe(self) -> str:
        """sha256 of the encoder's settings and files."""
        return str(self._encoder.recipe["sha256"])

    def cosines(self, groups: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """The (A, A) cosines of every group's texts, rounded to six decimals, so that batches do not break ties."""
        cleaned = [[clean(text) for text in group] for group in groups]
        places = {text: place for place, text in enumerate(dict.fromkeys(text for group in cleaned for text in group))}
        vectors_ND = self._encoder.encode_passages([*places]).astype(np.float64)
        lengths_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
        vectors_ND = vectors_ND / np.where(lengths_N1 > 0, lengths_N1, 1.0)
        rows = [vectors_ND[[places[text] for text in group]] for group in cleaned]
        return [np.round(each_AD @ each_AD.T, 6) for each_AD in rows]


def answer_encoder_needs(machine: Machine, encoder: str, device: str, precision: Precision) -> tuple[Need, ...]:
    """Memory of an encoder of answers."""
    return machine.networks(
        encoder, device, precision,
        lambda compute: {"encoder of answers": encoder_memory(encoder, ANSWER_TOKENS, 256, None, compute)},
    )  # fmt: skip
