"""Dense retrieval from a Qdrant collection: for corpora beyond one machine, with the results of an index folder."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common.checks import Precision, check_at_least
from common.errors import ArtifactError
from common.progress import in_bytes, say
from common.records import Passage, Ranked

if TYPE_CHECKING:
    import numpy as np

_QUERIES_AT_ONCE = 16  # of one request


class QdrantRetriever:
    """Retrieves the passages with the greatest inner product between passage and query vector.

    The server proposes candidates; scores and order are computed from their vectors, as in an index folder.

    Args:
        collection: Name of the collection that `infer.py index --to qdrant` wrote.
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
        expect_corpus: Required corpus fingerprint; None accepts any.

    Raises:
        MissingInputError: If there is no such collection, or the encoder is not found.
        ArtifactError: If the collection is incomplete, or of another corpus or encoder.
        UnavailableError: If the server does not answer.
        UserError: If a device or a parameter is not possible here.
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
        batch_tokens: int | None = None,
        exact: bool = False,
        hnsw_ef: int | None = None,
        expect_corpus: str | None = None,
    ) -> None:
        self.check_options(collection, url, path, key_variable, batch_tokens, hnsw_ef)
        from harness.indexing.qdrant_collection import Place, QdrantVectors
        from harness.indexing.sentence_encoder import SentenceEncoder

        place = Place(url, Path(path) if path is not None else None, collection, key_variable)
        self._vectors = QdrantVectors(place, exact, hnsw_ef, expect_corpus)
        self.index = self._vectors.index
        recipe, name = self.index.recipe, encoder or self.index.origin["encoder"]
        settings = {key: recipe["encoder"][key] for key in ("max_tokens", "query_prefix", "passage_prefix")}
        self.encoder = SentenceEncoder(name, device, precision=precision, batch_tokens=batch_tokens, **settings)
        if self.encoder.recipe != recipe["encoder"]:
            raise ArtifactError(
                f"{place} was built with another encoder than {name} (the files differ). Name that encoder with "
                "--encoder, or upload the collection again: infer.py index --to qdrant --overwrite true."
            )
        say(
            f"{place}: {self.index.passages:,} passages, encoder {in_bytes(self.encoder.size_bytes)} on "
            f"{self.encoder.device} in {self.encoder.dtype}."
        )

    @staticmethod
    def check_options(
        collection: str,
        url: str | None,
        path: Path | None,
        key_variable: str | None,
        batch_tokens: int | None,
        hnsw_ef: int | None,
    ) -> None:
        """Raise UserError if a value is out of range."""
        from harness.indexing.qdrant_collection import Place

        check_at_least(1, batch_tokens=batch_tokens, hnsw_ef=hnsw_ef)
        Place(url, Path(path) if path is not None else None, collection, key_variable).check()

    def encode_queries(self, queries: Sequence[str]) -> "np.ndarray":
        """Embeddings of queries, float32 (Q, D): the first step of `search`."""
        return self.encoder.encode_queries(queries)

    def search_vectors(self, queries_QD: "np.ndarray", k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query vector: the second step of `search`.

        Raises:
            UserError: If k is below 1.
            UnavailableError: If the server does not answer.
        """
        check_at_least(1, k=k)
        from harness.indexing.exact_rescoring import search_exactly

        k = min(k, self.index.passages)
        results: list[list[Ranked]] = []
        for start in range(0, len(queries_QD), _QUERIES_AT_ONCE):
            read: dict[int, Passage] = {}
            proposed = partial(self._vectors.candidates, queries_QD[start : start + _QUERIES_AT_ONCE], read)
            for hits in search_exactly(
                queries_QD[start : start + _QUERIES_AT_ONCE], k, k, self.index.passages, proposed
            ):
                results.append([Ranked(read[position], score) for position, score in hits])
        return results

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k nearest passages of each query, best first; ties in the order of the corpus.

        An empty query returns an empty list; a k above the corpus size returns all passages.

        Raises:
            UserError: If k is below 1.
            UnavailableError: If the server does not answer.
        """
        rows = [row for row, query in enumerate(queries) if query.strip()]
        found = self.search_vectors(self.encode_queries([queries[row] for row in rows]), k)
        results: list[list[Ranked]] = [[] for _ in queries]
        for row, ranked in zip(rows, found, strict=True):
            results[row] = ranked
        return results
