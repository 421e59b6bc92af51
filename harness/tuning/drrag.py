"""Chooses CFS's options for every k on validation questions, by the whole system's recall of gold passages.

A grid over k1, depth, question weight and threshold; every pair is retrieved and scored once for all of it.
`selection_file` of the system reads what is written.

Shape legend: V settings of the grid, N questions.
"""

import math
from collections.abc import Mapping, Sequence
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
from harness.retrievers.corpora import absent_gold, gold_of, index_records
from harness.retrievers.two_stage import StageResults, search_twice
from harness.runtime.memo import Memo, Triple
from harness.selection import algorithms
from harness.selection.lazy_scoring import Pair
from harness.selection.options import SelectionOptions
from harness.selection.tuned import SELECTION, Tuned
from harness.systems.drrag import DrRag
from models.serving_manifest import manifest_sha256

if TYPE_CHECKING:
    Documents = float
else:
    Documents = ranged("Documents", float, (">=", 1))  # a mean number of them

_THRESHOLDS = 40  # that are tried, besides the exported one
_QUESTIONS_AT_ONCE = 64  # whose pair scores are in a table at a time
_FOLDS = 5

Found = Mapping[int, StageResults]  # of one question, by question weight


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class Grid:
    """The values of CFS's options that are tried, with every k1 below k.

    The defaults, depth = 2k and question weight 1, always are.

    Args:
        depths: Candidates per d_i.
        question_weights: How often the question stands before d_i; each costs a second search.
    """

    depths: tuple[PositiveInt, ...] = (4, 8, 12, 20)
    question_weights: tuple[PositiveInt, ...] = (1, 3)

    def options(self, k: int) -> list[SelectionOptions]:
        """CFS with every question weight, depth and k1; those that cost less first."""
        weights, depths = sorted({1, *self.question_weights}), sorted({2 * k, *self.depths})
        values = product(weights, depths, range(1, max(2, k)))
        return [SelectionOptions("cfs", k, k1, depth, question_weight=weight) for weight, depth, k1 in values]


class Tuning:
    """Chooses k1, depth, threshold and question weight of CFS for each k, by recall of gold passages.

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
        self.grid, self.limits = grid, dict(zip(ks, max_documents or map(float, ks), strict=True))

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
        assert system.scorer is not None  # checked above; a missing classifier is named before a missing index
        known = [question for question in questions if question.support and not question.gold.titles]
        if not known:
            raise UserError("Tuning needs questions with all of their gold passages: none of these ships them.")
        absent_gold(system, gold_of(known))  # refuses an index of another corpus
        tried = try_grid(system, known, self.limits, self.grid, settings.shared_memo())
        chosen_on = {
            "questions": len(known),
            "sha256": digest(known)[:12],
            "max_documents": self.limits,
            "indexes": index_records(system),
        }
        selection = {str(each.k): asdict(each.settings[each.chosen()]) for each in tried}
        of = manifest_sha256(system.serving)
        SELECTION.write(out, {"selection": selection, "classifier": of, "chosen_on": chosen_on})
        return [told(each) for each in tried]


@dataclass(slots=True)
class Tried:
    """CFS under every setting of the grid at one k."""

    k: int
    limit: float  # greatest mean number of documents
    settings: list[Tuned]
    default: int  # the place of the default setting
    recall_VN: NDArray[np.float32]
    documents_VN: NDArray[np.int16]
    similarity_N: NDArray[np.float64]  # recall of the top k of Retriever(q)

    def best(self, among: Sequence[int] | slice = slice(None)) -> int | None:
        """The place of the setting with the greatest mean recall; None if all of them hand over too many documents.

        Of equal ones the fewest documents, then the least cost.

        Args:
            among: Places of the questions that count.
        """
        recall_V = self.recall_VN[:, among].mean(axis=1, dtype=np.float64)
        documents_V = self.documents_VN[:, among].mean(axis=1, dtype=np.float64)
        rows = [row for row in range(len(self.settings)) if documents_V[row] <= self.limit + 1e-9]
        return min(rows, key=lambda row: (-round(float(recall_V[row]), 9), documents_V[row]), default=None)

    def chosen(self) -> int:
        """The place of the best setting.

        Raises:
            UserError: If all of them hand over too many documents.
        """
        if (row := self.best()) is None:
            raise UserError(
                f"tuning.max_documents: no setting for k = {self.k} hands over at most {self.limit:g} documents; the "
                f"fewest are {self.documents_VN.mean(axis=1).min():.2f}."
            )
        return row

    def on_other_questions(self) -> float | None:
        """Mean recall of every question under the options that the other folds choose; None where these have none."""
        count = len(self.similarity_N)
        recall_N = np.empty(count)
        for fold in range(min(_FOLDS, count)):
            fold_N = np.arange(fold, count, _FOLDS)
            others = np.setdiff1d(np.arange(count), fold_N)
            row = self.best(others.tolist()) if len(others) else None
            if row is None:
                return None
            recall_N[fold_N] = self.recall_VN[row, fold_N]
        return float(recall_N.mean())


def told(tried: Tried) -> str:
    """The choice for one k, and its recall.

    The options are the best on these questions, so their gain here is too high. "On other questions": each fifth of the
    questions with the options that the other four fifths choose.
    """
    row, elsewhere = tried.chosen(), tried.on_other_questions()
    its, recall_V = tried.settings[row], tried.recall_VN.mean(axis=1, dtype=np.float64)
    recalls = {} if elsewhere is None else {"on other questions": elsewhere}
    recalls |= {"defaults": float(recall_V[tried.default]), "similarity": float(tried.similarity_N.mean())}
    return (
        f"k = {tried.k}: k1 {its.k1}, depth {its.depth}, threshold {its.threshold:.4f}, question weight "
        f"{its.question_weight}; {tried.documents_VN[row].mean():.2f} documents, recall {100 * recall_V[row]:.2f} % "
        f"({', '.join(f'{name} {100 * value:.2f}' for name, value in recalls.items())})"
    )


def try_grid(
    system: DrRag, questions: Sequence[Question], limits: Mapping[int, float], grid: Grid, memo: Memo
) -> list[Tried]:
    """CFS of every question under every setting, for every k.

    Not by asking the system with each setting: that would look every pair up again for each of 40 thresholds.

    Args:
        system: Loaded, with a classifier.
        questions: With gold passages.
        limits: By k the greatest mean number of documents.
        grid: What is tried.
        memo: Of the pair scores.
    """
    options_of = {k: grid.options(k) for k in limits}
    options = [each for own in options_of.values() for each in own]
    size, first = max(each.ranking_size for each in options), max(each.concatenations for each in options)
    second = {each.question_copies: (first, first + max(each.pool_depth for each in options)) for each in options}
    retrieved = search_twice(system.retriever, questions, size, second, system.second_retriever)
    found = [{weight: of.results[place] for weight, of in retrieved.items()} for place in range(len(questions))]
    starts = range(0, len(questions), _QUESTIONS_AT_ONCE)
    batches = [slice(start, start + _QUESTIONS_AT_ONCE) for start in starts]
    best: list[float] = []
    for batch in track(batches, len(batches), "scoring the pairs of all options"):
        for scores in _scores(system, questions[batch], found[batch], options, memo):
            best += _best_of_each(scores)
    assert system.scorer is not None
    exported = system.scorer.threshold
    thresholds = sorted({exported, *threshold_grid(best)})
    tried = []
    for k, own in options_of.items():
        settings = [_tuned(each, threshold) for each in own for threshold in thresholds]
        default = settings.index(Tuned(algorithms.first_stage_size(k), 2 * k, exported, 1, False))
        shape, rankings = (len(settings), len(questions)), [of[1].rankings.ranking for of in found]
        similarity_N = np.array([_recall(*each) for each in zip(questions, (r[:k] for r in rankings), strict=True)])
        empty = np.empty(shape, np.float32), np.empty(shape, np.int16)
        tried.append(Tried(k, limits[k], settings, default, *empty, similarity_N))
    for batch in track(batches, len(batches), "trying options"):
        of_batch = _scores(system, questions[batch], found[batch], options, memo)
        for place, scores in enumerate(of_batch, batch.start):
            for each in tried:
                chosen = _chosen(options_of[each.k], thresholds, found[place], scores)
                each.recall_VN[:, place] = [_recall(questions[place], documents) for documents in chosen]
                each.documents_VN[:, place] = [len(documents) for documents in chosen]
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


def _tuned(options: SelectionOptions, threshold: float) -> Tuned:
    return Tuned(options.first_size, options.pool_depth, threshold, options.question_copies, False)


def _recall(question: Question, documents: Sequence[str]) -> float:
    """Share of a question's gold passages among the documents."""
    return share_found(question.gold_groups, documents)


def _best_of_each(scores: Mapping[Pair, float]) -> list[float]:
    """The best score by first document of the pair."""
    best: dict[str, float] = {}
    for (d_i, _), score in scores.items():
        best[d_i] = max(best.get(d_i, 0.0), score)
    return list(best.values())


def _chosen(
    options: Sequence[SelectionOptions], thresholds: Sequence[float], found: Found, scores: Mapping[Pair, float]
) -> list[list[str]]:
    """The documents that CFS chooses for a question, under all options and thresholds."""
    chosen = []
    for each in options:
        first, pools = each.stages(found[each.question_copies].rankings)
        for least in thresholds:
            chosen.append(algorithms.cfs(first, pools, each.k, partial(_is_positive, scores, least)))
    return chosen


def _is_positive(scores: Mapping[Pair, float], least: float, d1: str, d2: str) -> bool:
    return scores[d1, d2] >= least


def _scores(
    system: DrRag,
    questions: Sequence[Question],
    found: Sequence[Found],
    options: Sequence[SelectionOptions],
    memo: Memo,
) -> list[dict[Pair, float]]:
    """The scores of all pairs that some of the options may need, by question."""
    assert system.scorer is not None
    tables: list[dict[Pair, float]] = []
    triples: list[Triple] = []
    for question, of in zip(questions, found, strict=True):
        passages = {id_: passage for each in of.values() for id_, passage in each.passages.items()}
        pairs: dict[Pair, float] = {}
        for each in options:
            stages = zip(*each.stages(of[each.question_copies].rankings), strict=True)
            pairs |= {(d_i, d): math.nan for d_i, pool in stages for d in pool}
        triples += [(question.text, passages[d_i], passages[d]) for d_i, d in pairs]
        tables.append(pairs)
    values = iter(memo.scores(system.scorer, triples))
    return [{pair: next(values) for pair in pairs} for pairs in tables]
