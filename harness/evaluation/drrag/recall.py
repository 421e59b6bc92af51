"""Recall of gold passages for every selection and budget k, with the rows of DR-RAG's Tables 4 and 5.

All rows share one retrieval, deep enough for the largest k, and the pair scores: every pair is scored once.

Shape legend: N questions, R rows.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from common.records import Passage, Question, Ranked
from common.retrieval import search_for, share_found
from harness.evaluation.bootstrap import paired_intervals
from harness.interfaces import Retriever
from harness.retrievers.two_stage import StageResults, search_by_weight
from harness.selection.lazy_scoring import Pair, decide
from harness.selection.options import SelectionOptions
from harness.selection.score_cache import ScoreCache, Triple

BASELINE = "SM"
OWN = "own"  # the system's own selection, where it is not a row of the table


@dataclass(slots=True)
class RowOutcome:
    """One row of the table at one k.

    `documents` and `scores` hold, per question, the chosen ids in order and the pair scores used; `retrieved`, for
    retrievers alone, the passages with their scores. `seconds` is the time per question that this row alone would take,
    and `stages` that of its stages.
    """

    name: str
    k: int
    documents: list[tuple[str, ...]]
    seconds: float
    scores: list[dict[Pair, float]] = field(default_factory=list)
    options: SelectionOptions | None = None  # None for retrievers alone
    stages: dict[str, float] = field(default_factory=dict)
    retrieved: list[list[Ranked]] = field(default_factory=list)
    tokens: float = 0.0  # per question, of pair scoring

    @property
    def pairs_per_question(self) -> float:
        """Mean number of pairs scored."""
        return sum(map(len, self.scores)) / max(1, len(self.documents))


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of one outcome; shares are between 0 and 1, differences are to similarity matching at the same k."""

    recall: float
    documents: float
    all_found: float  # share of questions with every gold passage found
    difference: float
    interval: tuple[float, float]
    relative_time: float | None  # None where the clock saw no time
    pairs: float  # scored per question


@dataclass(slots=True)
class Evaluation:
    """All rows, in the order of the table, with the passages by id."""

    questions: list[Question]
    outcomes: list[RowOutcome]
    passages: dict[str, Passage]
    seconds: dict[str, float]  # per stage, all questions together
    results: dict[int, list[StageResults]] = field(
        default_factory=dict
    )  # of both stages, by question weight and question
    own: RowOutcome | None = None  # of the system's own selection; one of `outcomes` or a further one

    def recall(self, outcome: RowOutcome) -> NDArray[np.float64]:
        """Share of gold passages found, per question; NaN where the file does not ship all of them."""
        shares = [
            share_found(question.gold_groups, documents) if is_known else np.nan
            for question, documents, is_known in zip(self.questions, outcome.documents, self.known, strict=True)
        ]
        return np.array(shares)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether a question's gold passages are all in the file."""
        return np.array([bool(each.support) and not each.unshipped_support for each in self.questions])


def table_selections(base: SelectionOptions, with_classifier: bool) -> dict[str, SelectionOptions]:
    """The selections of the table by row name, with the options of `base`.

    Only the row `CFS, filled` sets `fill_budget`.
    """
    base = replace(base, fill_budget=False)
    selections = {
        BASELINE: replace(base, method="sm"),
        "QDC": replace(base, method="qdc"),
        "CIS": replace(base, method="cis", second_stage="qdc"),
        "CIS w/o QDC": replace(base, method="cis", second_stage="ranking"),
        "CFS": replace(base, method="cfs", second_stage="qdc", cfs_rule="first"),
        "CFS w/o QDC": replace(base, method="cfs", second_stage="ranking", cfs_rule="first"),
        "CFS, all": replace(base, method="cfs", second_stage="qdc", cfs_rule="all"),
        "CFS, filled": replace(base, method="cfs", second_stage="qdc", cfs_rule="first", fill_budget=True),
        "ranked": replace(base, method="ranked"),
    }
    return {name: options for name, options in selections.items() if with_classifier or not options.needs_classifier}


def run(
    questions: Sequence[Question],
    retriever: Retriever,
    baselines: Mapping[str, Retriever],
    selections: Mapping[str, SelectionOptions],
    ks: Sequence[int],
    cache: ScoreCache | None,
    lookahead: int = 4,
    own: SelectionOptions | None = None,
    complete: Callable[[SelectionOptions], SelectionOptions] = lambda options: options,
    second_retriever: Retriever | None = None,
) -> Evaluation:
    """Retrieve, score pairs and select documents for every row and k, and for the system's own selection.

    Args:
        questions: With their gold passages where these are known.
        retriever: Used for both stages of the selections, or for the first.
        baselines: Further retrievers by row name; their rows are the top k.
        selections: The selections by row name, from `table_selections`; their `k` is set to each of `ks`.
        ks: Document budgets.
        cache: Scores pairs; may be None if no selection needs the classifier.
        lookahead: See `harness.selection.lazy_scoring.decide`.
        own: The system's own selection with its own k; None to leave it out.
        complete: Completes a row's options once its k is known.
        second_retriever: Of the second stage; `retriever` when None.
    """
    texts = [question.text for question in questions]
    retrieved, baseline_seconds = _baselines(baselines, questions, max(ks))
    variants = {(name, k): complete(replace(options, k=k)) for k in ks for name, options in selections.items()}
    own_key = next((key for key, options in variants.items() if options == own), (OWN, 0))
    if own is not None:
        variants.setdefault(own_key, own)
    longest = max(options.ranking_size for options in variants.values())
    retrievals = search_by_weight(retriever, questions, longest, searches_of(variants.values()), second_retriever)
    results = {weight: retrieval.results for weight, retrieval in retrievals.items()}
    passages = {id_: passage for of in results.values() for each in of for id_, passage in each.passages.items()}
    passages |= {hit.passage.id: hit.passage for rankings in retrieved.values() for row in rankings for hit in row}

    jobs = [(options, each.rankings) for options in variants.values() for each in results[options.question_copies]]

    def score_batch(requested: list[tuple[int, Pair]]) -> list[float]:
        assert cache is not None  # given if a selection needs pair scores
        triples: list[Triple] = [(texts[job % len(texts)], passages[d1], passages[d2]) for job, (d1, d2) in requested]
        return cache.probabilities(triples)

    decisions = decide(jobs, score_batch, lookahead)

    first_seconds = next(iter(retrievals.values())).first_seconds
    second_seconds = sum(each.second_seconds for each in retrievals.values())
    first = first_seconds / len(questions)
    each_concatenation = second_seconds / max(1, sum(each.concatenations for each in retrievals.values()))
    by_row: dict[tuple[str, int], RowOutcome] = {}
    for position, ((name, k), options) in enumerate(variants.items()):
        decided = decisions[position * len(questions) : (position + 1) * len(questions)]
        documents = [tuple(d.documents) for d in decided]
        outcome = RowOutcome(name, options.k, documents, 0.0, [d.scores for d in decided], options)
        scoring = outcome.pairs_per_question * (cache.seconds_per_pair if cache is not None else 0.0)
        second = options.concatenations * each_concatenation
        outcome.stages = {"first_stage": first, "second_stage": second, "scoring": scoring}
        outcome.seconds = first + second + scoring
        outcome.tokens = outcome.pairs_per_question * (cache.tokens_per_pair if cache is not None else 0.0)
        by_row[name, k] = outcome

    outcomes = []
    for k in ks:
        for name, rankings in retrieved.items():
            top = [row[:k] for row in rankings]
            documents = [tuple(hit.passage.id for hit in row) for row in top]
            seconds = baseline_seconds[name] / len(questions)
            outcomes.append(RowOutcome(name, k, documents, seconds, stages={"retrieval": seconds}, retrieved=top))
        outcomes += [by_row[name, k] for name in selections]
    stage_seconds = {
        **{f"baseline {name}": value for name, value in baseline_seconds.items()},
        "first stage": first_seconds,
        "second stage": second_seconds,
        "scoring": cache.memo.seconds if cache is not None else 0.0,
    }
    return Evaluation(list(questions), outcomes, passages, stage_seconds, results, by_row.get(own_key) if own else None)


def searches_of(variants: Iterable[SelectionOptions]) -> dict[int, tuple[int, int]]:
    """The second searches that all selections need: number and size by question weight, for `search_by_weight`."""
    searches: dict[int, tuple[int, int]] = {}
    for options in variants:
        number, size = searches.get(options.question_copies, (0, 0))
        needed = max(number, options.concatenations), max(size, options.concatenated_size)
        searches[options.question_copies] = needed
    return searches


def measure(evaluation: Evaluation, resamples: int = 10_000, seed: int = 0) -> list[Metrics]:
    """The metrics of every outcome, on the questions whose gold passages are known.

    With 95% paired bootstrap intervals of the difference to similarity matching.
    """
    outcomes, places = evaluation.outcomes, np.flatnonzero(evaluation.known)
    recalls_RN = np.stack([evaluation.recall(outcome)[places] for outcome in outcomes])
    baseline_of = {outcome.k: row for row, outcome in enumerate(outcomes) if outcome.name == BASELINE}
    differences_RN = recalls_RN - recalls_RN[[baseline_of[outcome.k] for outcome in outcomes]]
    intervals_R2 = paired_intervals(differences_RN, resamples, seed)
    measured = []
    for row, outcome in enumerate(outcomes):
        baseline_seconds = outcomes[baseline_of[outcome.k]].seconds
        measured.append(
            Metrics(
                recall=float(recalls_RN[row].mean()),
                documents=float(np.mean([len(outcome.documents[place]) for place in places])),
                all_found=float((recalls_RN[row] == 1).mean()),
                difference=float(differences_RN[row].mean()),
                interval=(float(intervals_R2[row, 0]), float(intervals_R2[row, 1])),
                relative_time=outcome.seconds / baseline_seconds if outcome.seconds and baseline_seconds else None,
                pairs=float(np.mean([len(outcome.scores[place]) for place in places])) if outcome.scores else 0.0,
            )
        )
    return measured


def differing(evaluation: Evaluation, k: int, row: str = "CFS", other: str = "QDC") -> int | None:
    """On how many questions with known gold two rows choose different documents; None if a row was not evaluated.

    CFS with a classifier that accepts nearly every pair is QDC: its gain over SM is then QDC's.
    """
    chosen = {outcome.name: outcome.documents for outcome in evaluation.outcomes if outcome.k == k}
    if row not in chosen or other not in chosen:
        return None
    pairs = zip(chosen[row], chosen[other], evaluation.known, strict=True)
    return sum(set(one) != set(two) for one, two, is_known in pairs if is_known)


def _baselines(
    baselines: Mapping[str, Retriever], questions: Sequence[Question], k: int
) -> tuple[dict[str, list[list[Ranked]]], dict[str, float]]:
    """The top k passages of each baseline, and its search time in seconds."""
    retrieved, seconds = {}, {}
    for name, retriever in baselines.items():
        started = time.perf_counter()
        retrieved[name] = search_for(retriever, questions, k)
        seconds[name] = time.perf_counter() - started
    return retrieved, seconds
