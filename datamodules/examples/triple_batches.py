"""Batches of DR-RAG's triples, made from the numbers of their texts. A worker process needs nothing else.

Shape legend: P triples, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from datamodules.examples.batches import TokenBatch
from models.drrag.triple_tokenizer import Padding, TripleEncoder


@dataclass
class TripleBatch(TokenBatch):
    """P triples of at most T tokens on one rank."""

    ids_PT: Tensor
    attention_PT: Tensor
    labels_P: Tensor  # 1.0 positive, 0.0 negative
    weights_P: Tensor  # 1.0; 0.0 for a dummy triple on a rank without data
    step_triples: int  # triples of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each triple in the epoch or the validation set


@dataclass(frozen=True, slots=True)
class TripleNumbers:
    """Some triples by the numbers of their texts."""

    own_P: NDArray[np.int64]  # number of the question's text
    passages_P2: NDArray[np.int64]  # numbers of the passages' texts


@dataclass(frozen=True, slots=True)
class TripleRequest:
    """The request for a batch; its fields are those of `TripleBatch`."""

    numbers: TripleNumbers
    positive_P: NDArray[np.bool_]
    weight: float
    step_triples: int
    rows: Sequence[int]


class TokenIds(Protocol):
    """Token ids of texts by their number, such as `datamodules.cache.token_cache.TokenCache`."""

    def __getitem__(self, row: int) -> list[int]: ...


class TripleTexts:
    """Token ids of triples.

    Args:
        tokens: Of the questions' texts and their passages'.
        encode: Joins the token ids.
    """

    def __init__(self, tokens: TokenIds, encode: TripleEncoder) -> None:
        self._tokens, self._encode = tokens, encode

    def encoded(self, numbers: TripleNumbers) -> list[list[int]]:
        """Token ids of each."""
        return [
            self._encode.join(self._tokens[own], [self._tokens[each] for each in passages])
            for own, passages in zip(numbers.own_P.tolist(), numbers.passages_P2.tolist(), strict=True)
        ]


class TripleBatches:
    """Makes batches of requests; a copy in another process makes the same ones.

    Args:
        texts: Of the triples.
        encode: The classifier's tokenizer.
        padding: Of the classifier.
    """

    def __init__(self, texts: TripleTexts, encode: TripleEncoder, padding: Padding) -> None:
        self._texts, self._encode, self._padding = texts, encode, padding

    def __call__(self, request: TripleRequest) -> TripleBatch:
        """The batch of a request."""
        ids_PT, attention_PT = self._padding.pad(self._encode, self._texts.encoded(request.numbers))
        return TripleBatch(
            ids_PT,
            attention_PT,
            torch.from_numpy(request.positive_P).float(),
            torch.full((len(request.rows),), request.weight),
            request.step_triples,
            torch.tensor(request.rows),
        )
