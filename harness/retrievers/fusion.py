"""Fusion of several retrievers' ranked lists, by reciprocal rank or by weighted score."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Literal, get_args

from common.checks import check_at_least, check_choice
from common.errors import UserError
from common.records import Passage, Ranked
from harness.interfaces import Retriever
from harness.retrievers.corpora import check_same_corpus
from harness.runtime.memory_needs import Memory

FusionMethod = Literal["reciprocal_rank", "weighted_score"]
Scaling = Literal["min_max", "raw"]


def reciprocal_rank_fusion(
    lists: Sequence[Sequence[Ranked]], weights: Sequence[float], rank_constant: int = 60
) -> list[Ranked]:
    """Reciprocal rank fusion (Cormack et al. 2009): uses ranks only, so the lists' scores need not be comparable.

        score(d) = sum over lists i of  w_i / (rank_constant + rank_i(d)),   ranks from 1; 0 for lists without d

    Args:
        lists: One ranked list per retriever, best first.
        weights: One per list; all 1 is the published method.
        rank_constant: Greater values reduce the advantage of the first ranks.

    Returns:
        Every passage once, best first; ties in the order of first appearance, list by list.
    """
    return _fuse(
        lists,
        [[w / (rank_constant + rank) for rank, _ in enumerate(ranked, 1)] for w, ranked in _pairs(weights, lists)],
    )


def weighted_score_fusion(
    lists: Sequence[Sequence[Ranked]], weights: Sequence[float], scaling: Scaling = "min_max"
) -> list[Ranked]:
    """Fuse ranked lists by their scores.

        score(d) = sum over lists i of  w_i * s_i(d);   0 for lists without d

    Args:
        lists: One ranked list per retriever, best first.
        weights: One per list.
        scaling: `min_max` scales each list's scores to [0, 1] (all to 1 if they are equal); `raw` does not scale.

    Returns:
        As `reciprocal_rank_fusion`.
    """
    scale = _min_max if scaling == "min_max" else list
    return _fuse(
        lists, [[w * score for score in scale([r.score for r in ranked])] for w, ranked in _pairs(weights, lists)]
    )


def _pairs(weights: Sequence[float], lists: Sequence[Sequence[Ranked]]) -> list[tuple[float, Sequence[Ranked]]]:
    return list(zip(weights, lists, strict=True))


def _min_max(scores: list[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _fuse(lists: Sequence[Sequence[Ranked]], weighted: Sequence[Sequence[float]]) -> list[Ranked]:
    """Sum each passage's weighted scores over the lists."""
    passages: dict[str, Passage] = {}
    scores: dict[str, float] = {}
    for ranked, list_scores in zip(lists, weighted, strict=True):
        for hit, score in zip(ranked, list_scores, strict=True):
            passages.setdefault(hit.passage.id, hit.passage)
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + score
    # sorted() is stable and dictionaries keep their order: ties stay in the order of first appearance
    return sorted((Ranked(passages[id_], score) for id_, score in scores.items()), key=lambda hit: -hit.score)


class FusedRetriever:
    """Searches with several retrievers and fuses their ranked lists.

    Args:
        retrievers: At least one.
        weights: One per retriever, at least 0, not all 0; None: all 1.
        method: `reciprocal_rank` or `weighted_score`.
        candidates: Passages retrieved by each retriever; at least k.
        rank_constant: For `reciprocal_rank`, at least 0.
        scaling: For `weighted_score`: `min_max` or `raw`.

    Raises:
        UserError: If an argument is out of range.
        ArtifactError: If the retrievers search indexes of different corpora.
    """

    def __init__(
        self,
        retrievers: list[Retriever],
        weights: list[float] | None = None,
        method: FusionMethod = "reciprocal_rank",
        candidates: int = 100,
        rank_constant: int = 60,
        scaling: Scaling = "min_max",
    ) -> None:
        self.check_options(retrievers, weights, method, candidates, rank_constant, scaling)
        check_same_corpus(retrievers)
        self.retrievers, self.candidates = retrievers, candidates
        weights = [1.0] * len(retrievers) if weights is None else weights
        self._fuse: Callable[[Sequence[Sequence[Ranked]]], list[Ranked]]
        if method == "reciprocal_rank":
            self._fuse = partial(reciprocal_rank_fusion, weights=weights, rank_constant=rank_constant)
        else:
            self._fuse = partial(weighted_score_fusion, weights=weights, scaling=scaling)

    @staticmethod
    def check_options(
        retrievers: list[Retriever],
        weights: list[float] | None,
        method: str,
        candidates: int,
        rank_constant: int,
        scaling: str,
    ) -> None:
        """Raise UserError if a value is not allowed, or the weights do not match the retrievers."""
        given = [1.0] * len(retrievers) if weights is None else weights
        if not retrievers or len(given) != len(retrievers):
            raise UserError(f"Fusion needs one weight per retriever, got {len(retrievers)} and {len(given)}.")
        if not all(0 <= weight < inf for weight in given) or not any(given):
            raise UserError(f"Fusion needs weights of at least 0, one of them above 0, got {weights}.")
        check_at_least(1, candidates=candidates)
        check_at_least(0, rank_constant=rank_constant)
        check_choice(get_args(FusionMethod), method=method)
        check_choice(get_args(Scaling), scaling=scaling)

    @staticmethod
    def memory() -> Memory:
        """Nothing but its retrievers."""
        return Memory()

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query after fusion, best first.

        Raises:
            UserError: If k is below 1.
        """
        check_at_least(1, k=k)
        found = [retriever.search(queries, max(k, self.candidates)) for retriever in self.retrievers]
        return [self._fuse(lists)[:k] for lists in zip(*found, strict=True)]
