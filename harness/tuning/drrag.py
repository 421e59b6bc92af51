"""Chooses CFS's options for every k on validation questions, by the whole system's recall of gold passages.

A grid over k1, depth, threshold, question weight and orders of a pair; every pair is retrieved and scored once for all
of it. `selection_file` of the system reads what is written.

Shape legend: V settings of the grid, N questions.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.progress import track
from common.ranges import PositiveInt, ranged
from common.records import Question
from common.retrieval import share_found
from harness.evaluation.serialization import digest
from harness.evaluation.settings import Settings
from harness.interfaces import Retriever
from harness.retrievers.corpora import check_gold_in_index, gold_of, index_records
from harness.retrievers.two_stage import StageResults, search_twice
from harness.runtime.memo import Triple
from harness.selection import algorithms
from harness.selection.algorithms import Rankings
from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION, Tuned
from harness.systems.drrag import DrRag
from models.serving_manifest import manifest_sha256

if TYPE_CHECKING:
    Documents = float
else:
    Documents = ranged("Documents", float, (">=", 1))  # a mean number of them

_THRESHOLDS = 40  # that are tried, besides the exported one
_QUESTIONS_AT_ONCE = 64  # whose pairs are listed for scoring at a time
_FOLDS = 5


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
    found = search_twice(retriever, questions, max(*ks, most), second, second_retriever)
    return {weight: retrieval.results for weight, retrieval in found.items()}


def recall_of(question: Question, documents: Sequence[str]) -> float:
    """Share of a question's gold passages among the documents."""
    return share_found(question.gold_groups, documents)


class Tuning:
    """Chooses k1, depth, threshold, question weight and orders of CFS for each k, by recall of gold passages.

    Args:
        ks: Document budgets.
        grid: What is tried.
        max_documents: Greatest mean number of documents of CFS, one per k of `ks`; the paper's are [2.89,3.75,5.35]
            for [3,4,6].  k when omitted.

    Raises:
        UserError: If a k is given twice, or there is not one limit per k.
    """

    output = SELECTION.output

    def __init__(
        self,
        ks: tuple[PositiveInt, ...] = (3, 4, 6),
        grid: Grid = Grid(),
        max_documents: tuple[Documents, ...] | None = None,
    ) -> None:
        if not ks or len(set(ks)) < len(ks):
            raise UserError(f"tuning.ks is {list(ks)}; it must be different numbers, such as [3,4,6].")
        if max_documents is not None and len(max_documents) != len(ks):
            raise UserError(
                f"tuning.max_documents is {list(max_documents)}: give one number for each of tuning.ks {list(ks)}."
            )
        self.ks, self.grid, self.max_documents = ks, grid, max_documents

    def check(self, system: DrRag) -> None:
        """Raise UserError if the system has no classifier."""
        if system.serving is None and system.scorer is None:
            raise UserError("Tuning needs the trained classifier: name its folder with the system's serving.")

    def tune(self, system: DrRag, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Try the grid on the questions whose gold passages are all in the file, and write the best options.

        Args:
            system: Its retrievers and classifier count; its selection does not.
            questions: Validation questions.
            out: The file.
            settings: For the folder of scores that are kept until the file is written.

        Raises:
            UserError: If no question has all of its gold passages, or no setting keeps to a limit of documents.
            ArtifactError: If the index holds no gold passage.
        """
        assert system.scorer is not None  # checked above
        known = [question for question in questions if question.support and not question.gold.titles]
        if not known:
            raise UserError("Tuning needs questions with all of their gold passages: none of these ships them.")
        check_gold_in_index(system, gold_of(known))
        results = search_grid(system.retriever, known, self.ks, self.grid, system.second_retriever)
        score = partial(settings.shared_memo().scores, system.scorer)
        tried = try_grid(known, results, self.ks, self.grid, score, system.scorer.threshold)
        limits = dict(zip(self.ks, self.max_documents or map(float, self.ks), strict=True))
        chosen = {each.k: each.settings[_best(each, limits[each.k])] for each in tried}
        chosen_on = {
            "questions": len(known),
            "sha256": digest(known)[:12],
            "max_documents": limits,
            "indexes": index_records({"": system})[""],
        }
        selection, of = {str(k): asdict(each) for k, each in chosen.items()}, manifest_sha256(system.serving)
        SELECTION.write(out, {"selection": selection, "classifier": of, "chosen_on": chosen_on})
        return [told(each, limits[each.k]) for each in tried]


def _best(tried: "Tried", limit: float) -> int:
    """The place of the best setting; UserError without one."""
    if (row := tried.best(limit)) is None:
        raise UserError(
            f"tuning.max_documents: no setting for k = {tried.k} hands over at most {limit:g} documents; the fewest "
            f"are {tried.means()[1].min():.2f}."
        )
    return row


def told(tried: "Tried", limit: float) -> str:
    """The choice for one k, and its recall.

    The options are the best on these questions, so their gain here is too high. "On other questions": each fifth of the
    questions with the options that the other four fifths choose.
    """
    row = _best(tried, limit)
    its, (recall_V, documents_V) = tried.settings[row], tried.means()
    recalls = {"defaults": float(recall_V[tried.default_row]), "similarity": float(tried.similarity_N.mean())}
    if (elsewhere := on_other_questions(tried, limit)) is not None:
        recalls = {"on other questions": elsewhere, **recalls}
    return (
        f"k = {tried.k}: k1 {its.k1}, depth {its.depth}, threshold {its.threshold:.4f}, question weight "
        f"{its.question_weight}{', both orders' * its.symmetric}; {documents_V[row]:.2f} documents, recall "
        f"{100 * recall_V[row]:.2f} % ({', '.join(f'{name} {100 * value:.2f}' for name, value in recalls.items())})"
    )


def on_other_questions(tried: "Tried", limit: float) -> float | None:
    """Mean recall of every question under the options that the other folds choose; None where these have none."""
    count = len(tried.similarity_N)
    recall_N = np.empty(count)
    for fold in range(min(_FOLDS, count)):
        fold_N = np.arange(fold, count, _FOLDS)
        others = np.setdiff1d(np.arange(count), fold_N)
        row = tried.best(limit, others.tolist()) if len(others) else None
        if row is None:
            return None
        recall_N[fold_N] = tried.recall_VN[row, fold_N]
    return float(recall_N.mean())


@dataclass(slots=True)
class Tried:
    """CFS under every setting of the grid at one k."""

    k: int
    default: Tuned
    settings: list[Tuned]
    recall_VN: NDArray[np.float32]
    documents_VN: NDArray[np.int16]
    similarity_N: NDArray[np.float64]  # recall of the top k of Retriever(q)

    @property
    def default_row(self) -> int:
        """The place of the default setting."""
        return self.settings.index(self.default)

    def best(self, max_documents: float, among: Sequence[int] | None = None) -> int | None:
        """The place of the setting with the greatest mean recall.

        Of equal ones the fewest documents, then the least cost.

        Args:
            max_documents: Greatest mean number of documents.
            among: Places of the questions that count; None: all.

        Returns:
            None if every setting hands over more documents.
        """
        recall_V, documents_V = self.means(among)
        rows = [row for row in range(len(self.settings)) if documents_V[row] <= max_documents + 1e-9]
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
    score: Callable[[list[Triple]], list[float]],
    exported_threshold: float,
) -> list[Tried]:
    """CFS of every question under every setting, for every k.

    Args:
        questions: With gold passages.
        results: From `search_grid`.
        ks: Document budgets.
        grid: What is tried.
        score: Scores pairs.
        exported_threshold: The classifier's own, which is the default.
    """
    starts = range(0, len(questions), _QUESTIONS_AT_ONCE)
    batches = [range(start, min(start + _QUESTIONS_AT_ONCE, len(questions))) for start in starts]
    best: list[float] = []
    for batch in track(batches, len(batches), "scoring the pairs of all options"):
        for scores in _scores(questions, results, batch, ks, grid, score).values():
            best += _best_of_each(scores)
    thresholds = sorted({exported_threshold, *threshold_grid(best)})
    tried = []
    for k in ks:
        settings = grid.settings(k, thresholds)
        default = Tuned(algorithms.first_stage_size(k), 2 * k, exported_threshold, 1, False)
        shape, rankings = (len(settings), len(questions)), [each.rankings.ranking for each in results[1]]
        similarity_N = np.array([recall_of(q, ranking[:k]) for q, ranking in zip(questions, rankings, strict=True)])
        empty = np.empty(shape, np.float32), np.empty(shape, np.int16)
        tried.append(Tried(k, default, settings, *empty, similarity_N))
    for batch in track(batches, len(batches), "trying options"):
        scores_of = _scores(questions, results, batch, ks, grid, score)
        for each, place in product(tried, batch):
            found = {weight: of[place].rankings for weight, of in results.items()}
            _try_one(each, place, questions[place], found, scores_of[place])
    return tried


def threshold_grid(best: Sequence[float]) -> list[float]:
    """Thresholds that divide CFS's decisions into about equal shares.

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
    score: Callable[[list[Triple]], list[float]],
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
    for (place, pair), probability in zip(wanted, score(triples), strict=True):
        scores[place][pair] = probability
    return scores
