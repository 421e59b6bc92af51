"""RE-RAG's Tables 2 and 4 to 7 and Figure 2, computed from candidate sets.

Tables 4 and 5: a question is unanswerable for a ranker if none of its selected contexts contains an answer; it is
predicted unanswerable if no context's confidence reaches the threshold. Where all sets or none hold an answer, there is
nothing to detect: the tables say so.

Shape legend: N questions, R rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import Normalization
from harness.evaluation.answer_scores import percent_cells, score_answers
from harness.evaluation.paper_figures import Paper, published
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured
from harness.systems.rerag import Ranker, Source
from models.calibration import Calibration
from models.rerag.marginal_reader import AnyMarginal, Marginal, MarginalReading
from models.rerag.unanswerable import THRESHOLDS, best_refusal_threshold, detection

ABLATION: dict[str, tuple[Ranker, Ranker]] = {  # which ranker selects the contexts, which one's scores weight them
    "Baseline": ("retriever", "retriever"),
    "RE score": ("retriever", "estimator"),
    "RE context": ("estimator", "retriever"),
    "RE context, score": ("estimator", "estimator"),
}
RANKERS: dict[Ranker, str] = {"estimator": "RE", "retriever": "retriever"}  # ranker -> its name in the tables
PLAIN, FULL = "Baseline", "RE context, score"
EVERY, NONE = "every set holds an answer", "no set holds an answer"  # why nothing can be detected
TABLE_6_COUNTS = (5, 10)  # contexts that a language model reads
BASELINE = "generator without RE: "  # before the name of a setting: read by the baseline's generator
BY_GENERATOR: tuple[AnyMarginal, ...] = get_args(Marginal)  # the columns of the generator's answers


@dataclass(frozen=True, slots=True)
class Scoring:
    """Normalization of answers, bootstrap options, and how answers are marginalized: a column each."""

    normalization: Normalization
    bootstrap: Bootstrap
    marginals: Sequence[AnyMarginal] = BY_GENERATOR

    def exact(self, candidate_sets: Sequence[CandidateSet], readings: Sequence[MarginalReading]) -> NDArray[np.float64]:
        """Exact match of every question, (N,)."""
        questions = [each.question for each in candidate_sets]
        return score_answers([reading.text for reading in readings], questions, self.normalization)[0]


Readings = dict[tuple[str, AnyMarginal], list[MarginalReading]]  # (row of the ablation, marginal) -> one per question


def read_settings(
    candidate_sets: Sequence[CandidateSet], contexts: int, marginals: Sequence[AnyMarginal], prefix: str = ""
) -> Readings:
    """Every question's answer for every setting of the ablation; `prefix` names another generator."""
    return {
        (prefix + name, marginal): [each.read(*rankers, contexts, marginal) for each in candidate_sets]
        for name, rankers in ABLATION.items()
        for marginal in marginals
    }


def recall_table(
    candidate_sets: Sequence[CandidateSet], ks: tuple[int, ...], bootstrap: Bootstrap, paper: Paper | None
) -> ReportTable:
    """Table 2: share of questions with an answer in each ranker's first k candidates, and the estimator's gain.

    Args:
        candidate_sets: One per question.
        ks: The k of recall@k.
        bootstrap: For the intervals.
        paper: Adds the paper's results on this data set.
    """
    before, after = (_found(candidate_sets, ranker, ks) for ranker in ("retriever", "estimator"))
    cells = percent_cells(np.concatenate([before, after, after - before]), bootstrap)
    if not after.any():
        cells = [not_measured("no candidate holds an answer")] * len(cells)
    width, names = len(ks) + 1, ("retriever", "RE", "RE - retriever")
    return ReportTable(
        "recall",
        "Recall by DPR's has-answer (Table 2)",
        (*(f"R@{k} %" for k in ks), "all candidates %"),
        {name: cells[row * width : (row + 1) * width] for row, name in enumerate(names)},
        published("RE-RAG, Table 2", paper, [*map(str, ks), "all"]),
        "Share of questions with an answer in one of the first k passages; differences are paired, in points.",
        signed=frozenset(names[2:]),
    )


def _found(candidate_sets: Sequence[CandidateSet], ranker: Ranker, ks: tuple[int, ...]) -> NDArray[np.float64]:
    """Whether one of the first k candidates, for each k, and whether any candidate has an answer: (len(ks) + 1, N)."""
    first_N = []
    for each in candidate_sets:
        places = np.flatnonzero(each.has_answer_C[each.order(ranker)])
        first_N.append(places[0] if len(places) else np.inf)
    return (np.array(first_N)[None, :] < np.array([*ks, np.inf])[:, None]).astype(float)


def ablation_table(
    candidate_sets: Sequence[CandidateSet],
    readings: Readings,
    scoring: Scoring,
    contexts: int,
    paper: Paper | None,
    by_llm: bool = False,
) -> ReportTable:
    """Table 7: EM with the retriever's or the estimator's contexts and weights, and differences to the baseline.

    Args:
        candidate_sets: One per question.
        readings: By the jointly trained generator, and for the paper's first four rows by the baseline's (`BASELINE`).
        scoring: Normalization and bootstrap.
        contexts: Number of contexts read.
        paper: Adds this paper's published results, which are of trained generators.
        by_llm: Whether a language model reads in the place of the generator.
    """
    exact = {key: scoring.exact(candidate_sets, each) for key, each in readings.items()}
    prefixes = (BASELINE, "") if (BASELINE + FULL, scoring.marginals[0]) in exact else ("",)
    rows: dict[str, Cells] = {}
    for prefix in prefixes:
        for name in ABLATION:
            values = []
            for marginal in scoring.marginals:
                found_N = exact[prefix + name, marginal]
                values += [found_N, found_N - exact[prefix + "Baseline", marginal]]
            rows[prefix + name] = percent_cells(np.stack(values), scoring.bootstrap)
        baseline = rows[prefix + "Baseline"]
        rows[prefix + "Baseline"] = [cell if place % 2 == 0 else None for place, cell in enumerate(baseline)]
    gains = [(name, BASELINE + name) for name in ABLATION] + [(FULL, BASELINE + "Baseline")]
    for name, other in gains if len(prefixes) > 1 else ():
        differences = np.stack([exact[name, marginal] - exact[other, marginal] for marginal in scoring.marginals])
        cells = percent_cells(differences, scoring.bootstrap)
        rows[f"{name} - {other}"] = [part for cell in cells for part in (cell, None)]
    columns = tuple(text for m in scoring.marginals for text in (f"EM %, {m}", f"points to Baseline, {m}"))
    if by_llm:
        note = "The settings of Table 7, read by a language model; the paper's own rows are of trained generators."
    elif len(prefixes) > 1:
        note = (
            "Rows of the generator without RE, which was trained under the retriever's weights, are the paper's first "
            "four; the others use the jointly trained generator. Points are to the Baseline of the same generator; the "
            "last rows are paired differences between the two generators."
        )
    else:
        note = (
            "All rows use the jointly trained generator, under other weights than it was trained with in all but the "
            "last. The paper's first four rows have a generator trained without the estimator under the retriever's "
            "weights: --study.baseline_serving adds them."
        )
    return ReportTable(
        "ablation",
        f"Ablation with {contexts} contexts (Table 7)",
        columns,
        rows,
        {} if by_llm else published("RE-RAG, Table 7", paper, ["EM", *[""] * (len(columns) - 1)]),
        note,
        signed=frozenset([*columns[1::2], *(name for name in rows if f" - {BASELINE}" in name)]),
    )


def llm_table(
    candidate_sets: Sequence[CandidateSet], scoring: Scoring, contexts: int, paper: Paper | None
) -> ReportTable:
    """Table 6: EM of a language model's answers with the retriever's and with the estimator's contexts and weights.

    Args:
        candidate_sets: One per question, read by the language model.
        scoring: Normalization and bootstrap; the first marginal is used.
        contexts: Number of contexts read.
        paper: Adds this paper's published results.
    """
    counts = sorted({min(count, contexts) for count in TABLE_6_COUNTS})
    exact: dict[str, list[NDArray[np.float64]]] = {}
    for ranker, name in reversed(RANKERS.items()):
        exact[f"LLM w/ {name}"] = [
            scoring.exact(candidate_sets, [e.read(ranker, ranker, count, scoring.marginals[0]) for e in candidate_sets])
            for count in counts
        ]
    without, with_re = exact.values()
    exact["RE - retriever"] = [one - other for one, other in zip(with_re, without, strict=True)]
    columns = tuple(f"EM %, top-{count}" for count in counts)
    return ReportTable(
        "language model",
        f"RE plugged into a language model, {scoring.marginals[0]} (Table 6)",
        columns,
        {name: percent_cells(np.stack(values), scoring.bootstrap) for name, values in exact.items()},
        published("RE-RAG, Table 6", paper, [*map(str, counts)]) if {*counts} & {*TABLE_6_COUNTS} else {},
        "Each ranker's first contexts with its own weights, one call per context. The paper's language model is "
        "gpt-3.5-turbo-0125, its retriever FiD-KD's, its temperature of sampling 0.8.",
        signed=frozenset(["RE - retriever"]),
    )


def context_counts(contexts: int) -> list[int]:
    """1, 2, 5, 10, then in steps of five up to `contexts`."""
    return [*(k for k in (1, 2, 5) if k < contexts), *range(10, contexts, 5), contexts]


def contexts_table(candidate_sets: Sequence[CandidateSet], scoring: Scoring, contexts: int) -> ReportTable:
    """Figure 2: EM by number of contexts, each ranker with its own weights."""
    most = max((len(each.passages) for each in candidate_sets), default=0)
    counts = context_counts(max(1, min(contexts, most)))  # more contexts than any question has change nothing
    systems: list[tuple[str, Ranker, AnyMarginal]] = [
        (f"{name}, {marginal}", ranker, marginal) for ranker, name in RANKERS.items() for marginal in scoring.marginals
    ]
    rows: dict[str, Cells] = {}
    for count in counts:
        exact = [
            scoring.exact(candidate_sets, [each.read(ranker, ranker, count, marginal) for each in candidate_sets])
            for _, ranker, marginal in systems
        ]
        rows[f"{count}"] = percent_cells(np.stack(exact), scoring.bootstrap)
    return ReportTable(
        "contexts",
        "EM by number of contexts (Figure 2)",
        tuple(f"EM %, {name}" for name, *_ in systems),
        rows,
        note="Each ranker's first contexts with its own weights; the paper compares with FiD-KD, which fuses contexts.",
    )


def retriever_confidence(sets: Sequence[CandidateSet]) -> list[NDArray[np.float64]]:
    """Retriever scores as confidences.

    Cosines unchanged, others min-max scaled to 0..1 over all questions with that source.
    """
    scores = [each.retriever_C * each.retriever_temperature for each in sets]
    ends: dict[Source, tuple[float, float]] = {"cosine": (0.0, 1.0)}
    for source in {each.source for each in sets} - ends.keys():
        values = np.concatenate([s for s, each in zip(scores, sets, strict=True) if each.source == source])
        ends[source] = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    ends_of_each = [ends[each.source] for each in sets]
    return [(own - low) / (high - low or 1.0) for own, (low, high) in zip(scores, ends_of_each, strict=True)]


def calibrated(candidate_sets: Sequence[CandidateSet], calibration: Calibration) -> list[NDArray[np.float64]]:
    """Calibrated P(relevant) of every candidate."""
    return [np.array([calibration(score) for score in each.relevance_C]) for each in candidate_sets]


@dataclass(frozen=True, slots=True)
class Confidence:
    """One ranker's greatest confidence per question, with the true labels."""

    name: str
    max_N: NDArray[np.float64]  # greatest confidence; -inf without contexts
    answerable_N: NDArray[np.bool_]
    exact_N: NDArray[np.float64] | None  # EM with the ranker's contexts and weights; None without a generator
    threshold: float | None = None  # chosen on other questions, or given; None if there is none
    source: str = "exported"  # where the threshold is from

    @classmethod
    def of(
        cls,
        ranker: Ranker,
        candidate_sets: Sequence[CandidateSet],
        confidences: Sequence[NDArray[np.float64]],
        contexts: int,
        exact_N: NDArray[np.float64] | None,
        *threshold: Any,
    ) -> "Confidence":
        """Computed from the confidences in all candidates; behind them `threshold` and `source`."""
        selected = [each.order(ranker)[:contexts] for each in candidate_sets]
        answerable = [each.has_answer_C[rows].any() for each, rows in zip(candidate_sets, selected, strict=True)]
        greatest = [each[rows].max(initial=-np.inf) for each, rows in zip(confidences, selected, strict=True)]
        return cls(RANKERS[ranker], np.array(greatest), np.array(answerable, dtype=bool), exact_N, *threshold)

    @property
    def one_kind(self) -> str:
        """Why nothing can be detected among these questions.

        Empty if there are sets with and sets without an answer.
        """
        if self.answerable_N.all():
            return EVERY
        return "" if self.answerable_N.any() else NONE

    @property
    def thresholds(self) -> dict[str, float]:
        """By row: the one that was exported or given, then the best on these questions; none where there is none."""
        known = {} if self.threshold is None else {f"{self.source} threshold {self.threshold:g}": self.threshold}
        if not self.one_kind:
            best, _ = best_refusal_threshold(self.max_N, self.answerable_N)
            known[f"threshold {best:g}, best on these questions"] = best
        return {f"{self.name}, {row}": threshold for row, threshold in known.items()}


def refusal_tables(systems: Sequence[Confidence], bootstrap: Bootstrap, paper: Paper | None) -> list[ReportTable]:
    """Tables 4 and 5.

    Args:
        systems: The estimator first, then the retriever.
        bootstrap: For the intervals.
        paper: Adds the paper's results on this data set.
    """
    tables = [_detection_table(systems, paper)]
    if all(system.exact_N is not None for system in systems):
        tables.append(_refusal_table(systems, bootstrap, paper))
    return tables


def _detection_table(systems: Sequence[Confidence], paper: Paper | None) -> ReportTable:
    columns = ("recall %", "precision %", "F1 %")
    rows: dict[str, Cells] = {}
    for system in systems:
        if system.one_kind:
            rows[system.name] = [not_measured(system.one_kind)] * len(columns)
            continue
        for row, threshold in system.thresholds.items():
            found = detection(system.max_N, system.answerable_N, threshold)
            precision = Cell(100 * found.precision) if found.refused else not_measured("none refused")
            rows[row] = [Cell(100 * found.recall), precision, Cell(100 * found.f1)]
    counts = ", ".join(f"{s.name} {int((~s.answerable_N).sum()):,} of {len(s.answerable_N):,}" for s in systems)
    note = (
        f"Sets without an answer: {counts}. An exported threshold was chosen on validation questions. The best "
        f"threshold on these questions, of {THRESHOLDS[0]:g} to {THRESHOLDS[-1]:g}, is optimistic; the paper does not "
        "say on which questions it searched."
    )
    title = "Detection of context sets without an answer (Table 4)"
    return ReportTable(
        "detection", title, columns, rows, published("RE-RAG, Table 4", paper, ("recall", "precision", "F1")), note
    )


def _refusal_table(systems: Sequence[Confidence], bootstrap: Bootstrap, paper: Paper | None) -> ReportTable:
    columns = ("with answer", "EM % before", "EM % after", "without answer", "refused %")
    rows: dict[str, Cells] = {}
    for system in systems:
        if not system.thresholds:
            reason = f"no threshold is exported, and {system.one_kind}"
            rows[system.name] = [not_measured(reason)] * len(columns)
            continue
        assert system.exact_N is not None
        row, threshold = next(iter(system.thresholds.items()))
        exact_N, refused_N, with_N = system.exact_N, system.max_N < threshold, system.answerable_N
        before_N, after_N = exact_N[with_N], (exact_N * ~refused_N)[with_N]
        before, after = percent_cells(np.stack([before_N, after_N]), bootstrap, NONE)
        (refused,) = percent_cells(refused_N[~with_N][None].astype(float), bootstrap, EVERY)
        rows[row] = [Cell(int(with_N.sum())), before, after, Cell(int((~with_N).sum())), refused]
    return ReportTable(
        "refusal",
        "Refusal of unanswerable questions (Table 5)",
        columns,
        rows,
        published("RE-RAG, Table 5", paper, ("", "before", "after", "", "refused")),
        "EM on sets with an answer, before and after refusal; share of refused questions among sets without an answer.",
    )
