"""The grid of CFS's options, and the retrieval that all of it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from common.ranges import PositiveInt
from common.records import Question
from harness.interfaces import Retriever
from harness.retrievers.two_stage import StageResults, search_by_weight
from harness.selection import algorithms
from harness.selection.tuned import Tuned


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class Grid:
    """The values of CFS's options that are tried.

    The defaults, k1 = ceil(k / 2), depth = 2k and question weight 1, always are.

    Args:
        k1: Numbers of first-stage documents; 1 to k - 1 when None.
        depths: Candidates per d_i.
        question_weights: How often the question stands before d_i; each costs a second search.
        symmetric: Whether to try the mean of both orders of a pair, too, for twice as many pair scores.
    """

    k1: tuple[PositiveInt, ...] | None = None
    depths: tuple[PositiveInt, ...] = (4, 8, 12, 20)
    question_weights: tuple[PositiveInt, ...] = (1, 3)
    symmetric: bool = False

    def first_sizes(self, k: int) -> list[int]:
        """The k1 to try, the default among them."""
        given = range(1, k) if self.k1 is None else [k1 for k1 in self.k1 if k1 <= k]
        return sorted({*given, algorithms.first_stage_size(k)})

    def pool_depths(self, k: int) -> list[int]:
        """The depths to try, the default among them."""
        return sorted({*self.depths, 2 * k})

    @property
    def weights(self) -> list[int]:
        """The question weights to try, 1 among them."""
        return sorted({1, *self.question_weights})

    def settings(self, k: int, thresholds: Sequence[float]) -> list[Tuned]:
        """All of them: those that cost less first, thresholds innermost."""
        orders = (False, True) if self.symmetric else (False,)
        first = product(orders, self.weights, self.pool_depths(k), self.first_sizes(k), thresholds)
        return [Tuned(k1, depth, threshold, weight, both) for both, weight, depth, k1, threshold in first]


def search_grid(
    retriever: Retriever,
    questions: Sequence[Question],
    ks: Sequence[int],
    grid: Grid,
    second_retriever: Retriever | None = None,
) -> dict[int, list[StageResults]]:
    """Both stages' results for the whole grid, by question weight."""
    most = max(size for k in ks for size in grid.first_sizes(k))
    size = most + max(depth for k in ks for depth in grid.pool_depths(k))
    second = dict.fromkeys(grid.weights, (most, size))
    found = search_by_weight(retriever, [each.text for each in questions], max(*ks, most), second, second_retriever)
    return {weight: retrieval.results for weight, retrieval in found.items()}


def recall_of(question: Question, documents: Sequence[str]) -> float:
    """Share of a question's gold passages among the documents."""
    gold = set(question.support)
    return len(gold.intersection(documents)) / len(gold)
