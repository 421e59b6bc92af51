"""Fusion of several retrievers' ranked lists, by reciprocal rank or by weighted score."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from common.records import Ranked, as_texts
from common.retrieval import reciprocal_rank_fusion, sum_of_scores
from harness.interfaces import Retriever
from harness.retrievers.corpora import check_same_corpus
from harness.runtime.loading import load

FusionMethod = Literal["reciprocal_rank", "weighted_score"]
Scaling = Literal["min_max", "raw"]


def weighted_score_fusion(
    lists: Sequence[Sequence[Ranked]], weights: Sequence[float], scaling: Scaling | Sequence[Scaling] = "min_max"
) -> list[Ranked]:
    """Fuse ranked lists by their scores.

        score(d) = sum over lists i of  w_i * s_i(d);   0 for lists without d

    Args:
        lists: One ranked list per retriever, best first.
        weights: One per list.
        scaling: `min_max` scales each list's scores to [0, 1] (all to 1 if they are equal); `raw` does not scale. One
            for all lists, or one per list.

    Returns:
        As `reciprocal_rank_fusion`.
    """
    scalings = [scaling] * len(lists) if isinstance(scaling, str) else scaling
    scores = [
        [weight * score for score in (_min_max if each == "min_max" else list)([hit.score for hit in ranked])]
        for weight, each, ranked in zip(weights, scalings, lists, strict=True)
    ]
    return sum_of_scores(lists, scores)


def _min_max(scores: list[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


class FusedRetriever:
    """Searches with several retrievers and fuses their ranked lists.

    Args:
        retrievers: At least one.
        weights: One per retriever, at least 0, not all 0; None: all 1.
        method: `reciprocal_rank` or `weighted_score`.
        candidates: Passages retrieved by each retriever; at least k.
        rank_constant: For `reciprocal_rank`, at least 0.
        scaling: For `weighted_score`: `min_max` or `raw`, or a list with one per retriever. `min_max` makes the last
            passage of a list count nothing, so that a retriever whose lists are short and whose scores have a fixed
            scale, such as `LinkRetriever`, should be `raw`.

    Raises:
        UserError: If there is no retriever, or not one weight and one scaling for each.
        ArtifactError: If the retrievers search indexes of different corpora.
    """

    def __init__(
        self,
        retrievers: list[Retriever],
        weights: list[NonNegativeFloat] | None = None,
        method: FusionMethod = "reciprocal_rank",
        candidates: PositiveInt = 100,
        rank_constant: NonNegativeInt = 60,
        scaling: Scaling | list[Scaling] = "min_max",
    ) -> None:
        weights = [1.0] * len(retrievers) if weights is None else weights
        if not retrievers or len(weights) != len(retrievers):
            raise UserError(f"Fusion needs one weight per retriever, got {len(retrievers)} and {len(weights)}.")
        if not any(weights):
            raise UserError(f"Fusion needs a weight above 0, got {weights}.")
        if not isinstance(scaling, str) and len(scaling) != len(retrievers):
            raise UserError(
                f"Fusion needs one scaling, or one per retriever, got {len(scaling)} for {len(retrievers)}."
            )
        self.retrievers, self.candidates = retrievers, candidates
        self.prefix_depth = candidates  # up to here, a search for fewer passages finds the beginning of the list
        self._fuse: Callable[[Sequence[Sequence[Ranked]]], list[Ranked]]
        if method == "reciprocal_rank":
            self._fuse = partial(reciprocal_rank_fusion, weights=weights, rank_constant=rank_constant)
        else:
            self._fuse = partial(weighted_score_fusion, weights=weights, scaling=scaling)

    def load(self) -> None:
        """Load the retrievers, and check that they search one corpus."""
        load(*self.retrievers)
        check_same_corpus(self.retrievers)

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query after fusion, best first."""
        queries = as_texts(queries)
        self.load()
        found = [retriever.search(queries, max(k, self.candidates)) for retriever in self.retrievers]
        return [self._fuse(lists)[:k] for lists in zip(*found, strict=True)]
