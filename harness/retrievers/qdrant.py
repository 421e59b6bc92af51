"""Dense retrieval from a Qdrant collection: for corpora beyond one machine, with the results of an index folder."""

from functools import cached_property, partial
from math import inf
from pathlib import Path

import numpy as np

from common.ranges import PositiveInt, Precision
from common.records import Passage, Ranked
from harness.indexing.exact_rescoring import search_exactly
from harness.indexing.qdrant_collection import CollectionIndex, QdrantVectors
from harness.indexing.qdrant_place import CollectionPlace
from harness.retrievers.dense import VectorRetriever

_QUERIES_AT_ONCE = 16  # of one request


class QdrantRetriever(VectorRetriever):
    """Retrieves the passages with the greatest inner product between passage and query vector.

    The server proposes candidates; scores and order are computed from their vectors, as in an index folder.

    Args:
        collection: Name of the collection that `infer.py index --qdrant.url URL` wrote.
        url: Address of the server, such as http://localhost:6333.
        path: In the place of `url`: folder of the client's local mode, for tests and small corpora.
        key_variable: Environment variable that holds the server's API key, if it needs one.
        device: Of the encoder: `auto`, `cpu`, `cuda` or `cuda:N`.
        encoder: Folder or hub id of the encoder, if it has moved since the index was built; it must have the same
            files.
        precision: Of the encoder: `auto`, `fp32` or `bf16`.
        batch_tokens: Tokens per forward pass of the encoder; None: chosen by device.
        exact: Whether the server compares all vectors, instead of searching its HNSW graph.
        hnsw_ef: Candidates of the graph search: more give higher recall and take longer; None: the server's choice.

    Raises:
        MissingInputError: If there is no such collection, or the encoder is not found.
        ArtifactError: If the collection is incomplete, or of another encoder.
        UnavailableError: If the server does not answer.
        UserError: If not one of `url` and `path` is given, or a device is not possible here.
    """

    def __init__(
        self,
        collection: str,
        url: str | None = None,
        path: Path | None = None,
        key_variable: str | None = None,
        device: str = "auto",
        encoder: str | None = None,
        precision: Precision = "auto",
        batch_tokens: PositiveInt | None = None,
        exact: bool = False,
        hnsw_ef: PositiveInt | None = None,
    ) -> None:
        self._place = CollectionPlace(url, Path(path) if path is not None else None, collection, key_variable)
        self._place.check()
        again = "upload the collection again: infer.py index --qdrant.url URL --overwrite true"
        super().__init__(encoder, device, precision, batch_tokens, again)
        self._search = (exact, hnsw_ef)

    def load(self) -> None:
        """Open the collection and load its encoder."""
        _ = self.encoder

    @cached_property
    def _vectors(self) -> QdrantVectors:
        return QdrantVectors(self._place, *self._search)

    @property
    def prefix_depth(self) -> float:
        """Up to this depth, a search for fewer passages finds the beginning of the list."""
        return inf if self._search[0] else 0

    @property
    def index(self) -> CollectionIndex:
        """The collection, as an index folder."""
        return self._vectors.index

    def search_vectors(self, queries_QD: np.ndarray, k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query vector: the second step of `search`.

        Raises:
            UnavailableError: If the server does not answer.
        """
        k = min(k, self.index.passages)
        results: list[list[Ranked]] = []
        for start in range(0, len(queries_QD), _QUERIES_AT_ONCE):
            some_QD, read = queries_QD[start : start + _QUERIES_AT_ONCE], dict[int, Passage]()
            proposed = partial(self._vectors.candidates, some_QD, read)
            for hits in search_exactly(some_QD, k, k, self.index.passages, proposed):
                results.append([Ranked(read[position], score) for position, score in hits])
        return results
