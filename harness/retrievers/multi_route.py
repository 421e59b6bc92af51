"""HiQA's multi-route retrieval (Eq. 2).

Vector similarity, BM25 and critical keywords, each over the whole index, in one score.

    score(d) = alpha * s_v(d) + (1 - alpha) * s_r(d) + beta * log(1 + |C|)

with s_v the cosine or inner product of query and passage, s_r the BM25 score, both scaled to [0, 1] over the candidates
of the query (`scaling`), and |C| the number of the query's critical keywords in d.

Shape legend: Q queries, N passages of the index, C candidates, P parent sections, F parents with a candidate, K found.
"""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from common.records import Passage, Ranked, as_texts
from harness.indexing.index_folder import Index
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.corpora import check_same_corpus
from harness.retrievers.dense import DenseRetriever
from harness.retrievers.fusion import Scaling
from harness.retrievers.keywords import KeywordRetriever
from harness.retrievers.parent_sections import ParentSections
from harness.retrievers.route_weights import WEIGHTS, weights_of_collection
from harness.runtime.loading import load

Scores = NDArray[np.float64]


def combined(
    vector_C: Scores, words_C: Scores, keywords_C: Scores, alpha: float, beta: float, scaling: Scaling = "min_max"
) -> Scores:
    """Eq. 2 for the candidates of one query, (C,).

    Args:
        vector_C: Similarity of the vectors.
        words_C: BM25 score.
        keywords_C: |C|, number of the query's critical keywords.
        alpha: 0 to 1.
        beta: At least 0.
        scaling: `min_max` scales the first two to [0, 1], to 0 where all are equal; `raw` does not scale.
    """
    scale = _min_max if scaling == "min_max" else np.asarray
    return alpha * scale(vector_C) + (1 - alpha) * scale(words_C) + beta * np.log1p(keywords_C)


def _min_max(scores_C: Scores) -> Scores:
    low, high = scores_C.min(), scores_C.max()
    return (scores_C - low) / (high - low) if high > low else np.zeros_like(scores_C)


def best_of_parents(
    scores_C: Scores, places_C: NDArray[np.int64], starts_P: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Scores]:
    """The parents of the candidates, (F,) in order, and the score of the best candidate of each, (F,).

    Args:
        scores_C: Of the candidates.
        places_C: Their positions in the index.
        starts_P: Position at which each parent begins, ascending from 0.
    """
    best_P = np.full(len(starts_P), -np.inf)
    np.maximum.at(best_P, np.searchsorted(starts_P, places_C, side="right") - 1, scores_C)
    found_F = np.flatnonzero(best_P > -np.inf)
    return found_F, best_P[found_F]


class MultiRouteRetriever:
    """Retrieves by three routes over indexes of the same corpus (HiQA, Eq. 2).

    Segments of documents are scored, and the parent section of the best one is returned (`parent_sections`): a small
    segment with its path is found precisely, a section is worth reading.

    Args:
        dense: The vectors' route.
        bm25: BM25's route.
        keywords: The keywords' route; None: without it.
        alpha: Weight of the vectors against BM25, 0 to 1; None: from `weights`, or by the collection's structure
            (`route_weights`).
        beta: Weight of the keywords, at least 0; None: from `weights`, or by the number of documents and their pages
            (`route_weights`).
        candidates: Best segments of each route that are candidates; None: all of the index.
        scaling: `min_max` over a query's candidates, or `raw`.
        section_words: Most words of a parent section; 0: the segments themselves are returned.
        weights: File with `alpha` and `beta` that `infer.py tune` chose on validation questions.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If the file is corrupt, or the indexes are of different corpora.
    """

    def __init__(
        self,
        dense: DenseRetriever,
        bm25: Bm25Retriever,
        keywords: KeywordRetriever | None = None,
        alpha: Share | None = None,
        beta: NonNegativeFloat | None = None,
        candidates: PositiveInt | None = None,
        scaling: Scaling = "min_max",
        section_words: NonNegativeInt = 300,
        weights: Path | None = None,
    ) -> None:
        self.retrievers: list[Retriever] = [dense, bm25, *([keywords] if keywords else [])]
        self.dense, self.bm25, self.keywords = dense, bm25, keywords
        self.candidates, self.scaling, self.section_words = candidates, scaling, section_words
        self._alpha, self._beta, self._weights = alpha, beta, weights

    def load(self) -> None:
        """Read the weights, open the indexes, which must be of one corpus, and find the parent sections."""
        _ = self.alpha, self.beta
        load(*self.retrievers)
        check_same_corpus(self.retrievers)
        _ = self.starts_P

    @property
    def index(self) -> Index:
        """The index of the vectors."""
        return self.dense.index

    @cached_property
    def _known(self) -> tuple[float, float]:
        return weights_of_collection(self.index.stored) if self._weights is None else WEIGHTS.read(Path(self._weights))

    @cached_property
    def alpha(self) -> float:
        """Weight of the vectors against BM25."""
        return self._known[0] if self._alpha is None else self._alpha

    @cached_property
    def beta(self) -> float:
        """Weight of the keywords."""
        return self._known[1] if self._beta is None else self._beta

    @cached_property
    def passages(self) -> Sequence[Passage]:
        """The passages that are returned: parent sections, or the segments."""
        return ParentSections(self.index.stored, self.section_words) if self.section_words else self.index.stored

    @cached_property
    def starts_P(self) -> NDArray[np.int64]:  # noqa: N802
        """Position of the first segment of each passage."""
        passages = self.passages
        return np.array(passages.starts) if isinstance(passages, ParentSections) else np.arange(len(passages))

    @property
    def facts(self) -> list[str]:
        """For a report."""
        return [f"Multi-route retrieval: alpha {self.alpha:.2f}, beta {self.beta:.2f}, scores {self.scaling}."]

    def with_options(
        self, alpha: float | None = None, beta: float | None = None, section_words: int | None = None
    ) -> "MultiRouteRetriever":
        """The same retriever with other options, for a study: the indexes are shared.

        None leaves an option.
        """
        self.load()
        other = copy(self)
        other.alpha = self.alpha if alpha is None else alpha
        other.beta = self.beta if beta is None else beta
        if section_words is not None:
            other.section_words = section_words
            del other.passages, other.starts_P
        return other

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best parent sections of each query, best first; ties in the order of the corpus."""
        queries = as_texts(queries)
        self.load()
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        vectors = dict(zip(asked, self.dense.encoder.encode_queries(asked), strict=True))
        best = {query: self._best(self.route_scores(query, query_D), k) for query, query_D in vectors.items()}
        return [[*best.get(query, ())] for query in queries]

    def route_scores(self, query: str, query_D: NDArray[np.float32]) -> tuple[Scores, Scores, Scores]:
        """Similarity of the vectors, BM25 score and |C| of every segment of the index, (N,) each."""
        words_N = self.bm25.scores(query)
        keywords_N = self.keywords.scores(query) if self.keywords else np.zeros_like(words_N)
        return self.dense.similarities(query_D), words_N, keywords_N

    def _best(self, routes: tuple[Scores, Scores, Scores], k: int) -> list[Ranked]:
        places_C = self._candidates(routes)
        vector_C, words_C, keywords_C = (scores_N[places_C] for scores_N in routes)
        scores_C = combined(vector_C, words_C, keywords_C, self.alpha, self.beta, self.scaling)
        found_F, scores_F = best_of_parents(scores_C, places_C, self.starts_P)
        order_K = np.lexsort((found_F, -scores_F))[:k]
        best = (self.passages[place] for place in found_F[order_K].tolist())
        return [*map(Ranked, best, scores_F[order_K].tolist())]

    def _candidates(self, routes: Sequence[Scores]) -> NDArray[np.int64]:
        """Positions of the candidates, in order: those with the greatest scores of each route that has a weight."""
        count = len(routes[0])
        if self.candidates is None or self.candidates >= count:
            return np.arange(count)
        weighed = zip(routes, (self.alpha, 1 - self.alpha, self.beta), strict=True)
        first = [np.argsort(-scores_N, kind="stable")[: self.candidates] for scores_N, weight in weighed if weight]
        return np.unique(np.concatenate(first))
