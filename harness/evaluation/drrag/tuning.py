"""Chooses CFS's options for every k on validation questions, by the whole system's recall of gold passages.

A grid over k1, depth, threshold, question weight and orders of a pair; every pair is retrieved and scored once for all
of it.

Shape legend: V settings of the grid, N questions.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from common.progress import track
from common.records import Question
from harness.evaluation.drrag.tuning_grid import Grid, ceilings, recall_of
from harness.retrievers.two_stage import StageResults
from harness.selection import algorithms
from harness.selection.algorithms import Rankings
from harness.selection.options import SelectionOptions
from harness.selection.score_cache import ScoreCache, Triple
from harness.selection.tuned import Tuned

_THRESHOLDS = 40  # that are tried, besides the exported one
_QUESTIONS_AT_ONCE = 64  # whose pairs are listed for scoring at a time


@dataclass(slots=True)
class Tried:
    """CFS under every setting of the grid at one k."""

    k: int
    default: Tuned
    settings: list[Tuned]
    recall_VN: NDArray[np.float32]
    documents_VN: NDArray[np.int16]
    similarity_N: NDArray[np.float64]  # recall of the top k of Retriever(q)
    ceiling: dict[tuple[int, int, int], float] = field(default_factory=dict)  # see `ceilings`

    @property
    def default_row(self) -> int:
        """The place of the default setting."""
        return self.settings.index(self.default)

    def best(
        self,
        most_documents: float,
        allowed: Callable[[Tuned], bool] = lambda _: True,
        among: Sequence[int] | None = None,
    ) -> int | None:
        """The place of the setting with the greatest mean recall.

        Of equal ones the fewest documents, then the least cost.

        Args:
            most_documents: Greatest mean number of documents.
            allowed: Which settings count.
            among: Places of the questions that count; None: all.

        Returns:
            None if every setting hands over more documents.
        """
        recall_V, documents_V = self.means(among)
        rows = [
            row for row, each in enumerate(self.settings) if allowed(each) and documents_V[row] <= most_documents + 1e-9
        ]
        return min(rows, key=lambda row: (-round(float(recall_V[row]), 9), documents_V[row]), default=None)

    def means(self, among: Sequence[int] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean recall and number of documents of every setting, over all questions or those at some places."""
        places = slice(None) if among is None else among
        recall_V = self.recall_VN[:, places].mean(axis=1, dtype=np.float64)
        return recall_V, self.documents_VN[:, places].mean(axis=1, dtype=np.float64)


def try_grid(
    questions: Sequence[Question],
    results: dict[int, list[StageResults]],
    ks: Sequence[int],
    grid: Grid,
    cache: ScoreCache,
    exported_threshold: float,
) -> list[Tried]:
    """CFS of every question under every setting, for every k.

    Args:
        questions: With gold passages.
        results: From `search_grid`.
        ks: Document budgets.
        grid: What is tried.
        cache: Scores pairs.
        exported_threshold: The classifier's own, which is the default.
    """
    starts = range(0, len(questions), _QUESTIONS_AT_ONCE)
    batches = [range(start, min(start + _QUESTIONS_AT_ONCE, len(questions))) for start in starts]
    best: list[float] = []
    for batch in track(batches, len(batches), "scoring the pairs of all options"):
        for scores in _scores(questions, results, batch, ks, grid, cache).values():
            best += _best_of_each(scores)
    thresholds = sorted({exported_threshold, *threshold_grid(best)})
    tried = []
    for k in ks:
        settings = grid.settings(k, thresholds)
        default = Tuned(algorithms.first_stage_size(k), 2 * k, exported_threshold, 1, False)
        shape, rankings = (len(settings), len(questions)), [each.rankings.ranking for each in results[1]]
        similarity_N = np.array([recall_of(q, ranking[:k]) for q, ranking in zip(questions, rankings, strict=True)])
        empty = np.empty(shape, np.float32), np.empty(shape, np.int16)
        tried.append(Tried(k, default, settings, *empty, similarity_N, ceilings(questions, results, k, grid)))
    for batch in track(batches, len(batches), "trying options"):
        scores_of = _scores(questions, results, batch, ks, grid, cache)
        for each, place in product(tried, batch):
            found = {weight: of[place].rankings for weight, of in results.items()}
            _try_one(each, place, questions[place], found, scores_of[place])
    return tried


def threshold_grid(best: Sequence[float]) -> list[float]:
    """Thresholds that part what CFS decides into about equal shares.

    Args:
        best: The best score of every d_i with its candidates: at a threshold above it, d_i brings nothing.

    Returns:
        Quantiles of its log-odds, rounded down to 0.01 nats, as probabilities.
    """
    log_odds = [algorithms.log_odds_of(score) for score in best]
    quantiles = np.quantile(log_odds, np.linspace(0, 1, _THRESHOLDS)) if log_odds else np.array([])
    return [1 / (1 + math.exp(-each)) for each in sorted({math.floor(100 * each) / 100 for each in quantiles})]


def _best_of_each(scores: dict[tuple[str, str], float]) -> list[float]:
    """The best score by first document of the pair."""
    best: dict[str, float] = {}
    for (d_i, _), score in scores.items():
        best[d_i] = max(best.get(d_i, 0.0), score)
    return list(best.values())


def _try_one(
    tried: Tried, place: int, question: Question, rankings: dict[int, Rankings], scores: dict[tuple[str, str], float]
) -> None:
    """Fill one question's columns."""
    stages: dict[tuple[int, int, int], tuple[list[str], list[list[str]]]] = {}
    log_odds = {pair: algorithms.log_odds_of(score) for pair, score in scores.items()}
    mean = {(a, b): (one + log_odds[b, a]) / 2 for (a, b), one in log_odds.items() if (b, a) in log_odds}
    for row, each in enumerate(tried.settings):
        key = each.question_weight, each.k1, each.depth
        if key not in stages:
            stages[key] = each.cfs(tried.k).stages(rankings[each.question_weight])
        least = algorithms.log_odds_of(each.threshold) if each.symmetric else each.threshold
        positive = partial(_at_least, mean if each.symmetric else scores, least)
        chosen = algorithms.cfs(*stages[key], tried.k, positive)
        tried.recall_VN[row, place] = recall_of(question, chosen)
        tried.documents_VN[row, place] = len(chosen)


def _at_least(values: dict[tuple[str, str], float], least: float, d1: str, d2: str) -> bool:
    return values[d1, d2] >= least


def _scores(
    questions: Sequence[Question],
    results: dict[int, list[StageResults]],
    batch: Sequence[int],
    ks: Sequence[int],
    grid: Grid,
    cache: ScoreCache,
) -> dict[int, dict[tuple[str, str], float]]:
    """The scores of all pairs that some setting may need, by the question's place."""
    wanted: list[tuple[int, tuple[str, str]]] = []
    triples: list[Triple] = []
    depth = max(each for k in ks for each in grid.pool_depths(k))
    sizes = sorted({size for k in ks for size in grid.first_sizes(k)})
    for place in batch:
        passages = {id_: passage for of in results.values() for id_, passage in of[place].passages.items()}
        pairs: dict[tuple[str, str], None] = {}
        for of, size in product(results.values(), sizes):
            first, pools = SelectionOptions("cfs", k=size, k1=size, depth=depth).stages(of[place].rankings)
            pairs |= dict.fromkeys((d_i, d) for d_i, pool in zip(first, pools, strict=True) for d in pool)
        if grid.symmetric:
            pairs |= dict.fromkeys((d2, d1) for d1, d2 in list(pairs))
        wanted += [(place, pair) for pair in pairs]
        triples += [(questions[place].text, passages[d1], passages[d2]) for d1, d2 in pairs]
    scores: dict[int, dict[tuple[str, str], float]] = {place: {} for place in batch}
    for (place, pair), score in zip(wanted, cache.probabilities(triples), strict=True):
        scores[place][pair] = score
    return scores
