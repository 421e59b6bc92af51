"""RE-RAG's Tables 2 and 7 and Figures 2 and 3, all from the same pools.

Shape legend: N questions, R rows.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import Bootstrap, Normalization, percent_cells, score_answers
from harness.evaluation.rerag.candidates import CandidateSet, Ranker
from harness.evaluation.tables import Cell, Cells, Table
from models.rerag.calibration import Calibration
from models.rerag.marginal_reader import Marginal, Reading

QUALITY_BINS = 10  # of the share of relevant contexts, above the bin of exactly none
RELEVANT = 0.5  # calibrated P from which a context counts as relevant (Section 5.1)


@dataclass(frozen=True, slots=True)
class Setting:
    """Whose contexts are read, and whose scores weigh them."""

    contexts: Ranker
    weights: Ranker


ABLATION = {
    "Baseline": Setting("retriever", "retriever"),
    "RE score": Setting("retriever", "estimator"),
    "RE context": Setting("estimator", "retriever"),
    "RE context, score": Setting("estimator", "estimator"),
}
RANKERS: dict[Ranker, str] = {"estimator": "RE", "retriever": "retriever"}  # with their names in tables
FULL = "RE context, score"
MARGINALS: tuple[Marginal, ...] = get_args(Marginal)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How answers are compared and intervals drawn."""

    normalization: Normalization
    bootstrap: Bootstrap

    def exact(self, pools: Sequence[CandidateSet], readings: Sequence[Reading]) -> NDArray[np.float64]:
        """Exact match of every question, (N,)."""
        return score_answers([r.text for r in readings], [pool.question for pool in pools], self.normalization).exact_N


Readings = dict[tuple[str, Marginal], list[Reading]]  # (row of the ablation, marginal) -> one per question


def read_settings(pools: Sequence[CandidateSet], contexts: int) -> Readings:
    """Every question's answer under every setting of the ablation."""
    return {
        (name, marginal): [pool.read(setting.contexts, setting.weights, contexts, marginal) for pool in pools]
        for name, setting in ABLATION.items()
        for marginal in MARGINALS
    }


Orders = Sequence[Sequence[int]]  # per question its candidates, best first


def recall_table(
    pools: Sequence[CandidateSet],
    ks: tuple[int, ...],
    bootstrap: Bootstrap,
    paper: paper_figures.Paper | None,
    others: Mapping[str, Orders] | None = None,
) -> Table:
    """Table 2: share of questions with an answer among the first k of each order, and what the estimator gains.

    Args:
        pools: All questions.
        ks: Numbers of first candidates.
        bootstrap: For the intervals.
        paper: Whose figures to print beside.
        others: Further orders of the same candidates, by name.
    """
    orders: dict[str, Orders] = {"retriever": [pool.order("retriever") for pool in pools], **(others or {})}
    estimated = _found(pools, [pool.order("estimator") for pool in pools], ks)
    found = {name: _found(pools, order, ks) for name, order in orders.items()} | {"RE": estimated}
    gains = {f"RE - {name}": estimated - found[name] for name in orders}
    cells = percent_cells(np.concatenate([*found.values(), *gains.values()]), bootstrap)
    width = len(ks) + 1
    return Table(
        "recall",
        "Recall by DPR's has-answer (Table 2)",
        (*(f"R@{k} %" for k in ks), "all candidates %"),
        {name: cells[row * width : (row + 1) * width] for row, name in enumerate([*found, *gains])},
        paper_figures.recall(paper, ks),
        "Share of questions of which one of the first k passages holds an answer; differences are paired, in points.",
        signed=frozenset(gains),
    )


def _found(pools: Sequence[CandidateSet], orders: Orders, ks: tuple[int, ...]) -> NDArray[np.float64]:
    """Whether the first k hold an answer, and whether any candidate does: (len(ks) + 1, N)."""
    first_N = []
    for pool, order in zip(pools, orders, strict=True):
        places = np.flatnonzero(pool.holds_C[list(order)])
        first_N.append(places[0] if len(places) else np.inf)
    return (np.array(first_N)[None, :] < np.array([*ks, np.inf])[:, None]).astype(float)


def ablation_table(
    pools: Sequence[CandidateSet],
    readings: Readings,
    scoring: Scoring,
    contexts: int,
    paper: paper_figures.Paper | None,
) -> Table:
    """Table 7: EM with the retriever's or the estimator's contexts and weights, and the differences to the baseline."""
    exact = {key: scoring.exact(pools, each) for key, each in readings.items()}
    rows: dict[str, Cells] = {}
    for name in ABLATION:
        values = []
        for marginal in MARGINALS:
            values += [exact[name, marginal], exact[name, marginal] - exact["Baseline", marginal]]
        rows[name] = percent_cells(np.stack(values), scoring.bootstrap)
    columns = tuple(text for m in MARGINALS for text in (f"EM %, {m}", f"points to Baseline, {m}"))
    rows["Baseline"] = [cell if place % 2 == 0 else None for place, cell in enumerate(rows["Baseline"])]
    return Table(
        "ablation",
        f"Ablation with {contexts} contexts (Table 7)",
        columns,
        rows,
        paper_figures.ablation(paper),
        "Here one generator serves all rows; the paper's first four rows have a T5-base generator trained without the "
        "estimator, and FiD-KD's retriever.",
        signed=frozenset(columns[1::2]),
    )


def context_counts(contexts: int) -> list[int]:
    """1, 2, 5, 10, then every five up to the number that is kept."""
    return [*(k for k in (1, 2, 5) if k < contexts), *range(10, contexts, 5), contexts]


def contexts_table(pools: Sequence[CandidateSet], scoring: Scoring, contexts: int) -> Table:
    """Figure 2: EM against the number of contexts, each ranker under its own weights."""
    counts = context_counts(contexts)
    systems: list[tuple[str, Ranker, Marginal]] = [
        (f"{name}, {marginal}", ranker, marginal) for ranker, name in RANKERS.items() for marginal in MARGINALS
    ]
    rows: dict[str, Cells] = {}
    for count in counts:
        exact = [
            scoring.exact(pools, [pool.read(ranker, ranker, count, marginal) for pool in pools])
            for _, ranker, marginal in systems
        ]
        rows[f"{count}"] = percent_cells(np.stack(exact), scoring.bootstrap)
    return Table(
        "contexts",
        "EM against the number of contexts (Figure 2)",
        tuple(f"EM %, {name}" for name, *_ in systems),
        rows,
        note="Each ranker's first contexts under its own weights; the paper compares with FiD-KD, which fuses contexts.",
    )


def retriever_confidence(pools: Sequence[CandidateSet], cosine: bool, temperature: float) -> list[NDArray[np.float64]]:
    """Retriever scores as confidences: cosines as they are, others scaled to 0..1 over all questions."""
    scores = [pool.retriever_C * temperature for pool in pools]
    if cosine:
        return scores
    every = np.concatenate(scores)
    low, high = (every.min(), every.max()) if len(every) else (0.0, 0.0)
    return [(score - low) / (high - low or 1.0) for score in scores]


def calibrated(pools: Sequence[CandidateSet], calibration: Calibration) -> list[NDArray[np.float64]]:
    """Calibrated P(relevant) of every candidate."""
    return [np.array([calibration(score) for score in pool.relevance_C]) for pool in pools]


def quality_table(
    pools: Sequence[CandidateSet],
    confidences: dict[Ranker, list[NDArray[np.float64]]],
    exact: dict[Ranker, NDArray[np.float64]],
    contexts: int,
) -> Table:
    """Figure 3: accuracy by the share of kept contexts whose confidence reaches 0.5.

    Args:
        pools: All questions.
        confidences: Each ranker's confidence in every candidate.
        exact: EM of each ranker's system, (N,).
        contexts: How many are kept.
    """
    columns: list[str] = []
    table: dict[str, list[Cell | None]] = {name: [] for name in _bin_names()}
    for ranker, title in RANKERS.items():
        bins_N = np.array(
            [
                _bin(confidence[pool.order(ranker)[:contexts]])
                for pool, confidence in zip(pools, confidences[ranker], strict=True)
            ]
        )
        columns += [f"questions, {title}", f"EM %, {title}"]
        for place, name in enumerate(table):
            inside_N = bins_N == place
            accuracy = 100 * float(exact[ranker][inside_N].mean()) if inside_N.any() else float("nan")
            table[name] += [Cell(int(inside_N.sum())), Cell(accuracy)]
    return Table(
        "quality",
        f"Accuracy by the share of relevant contexts (Figure 3): confidence of {RELEVANT} or more",
        tuple(columns),
        table,
    )


def _bin_names() -> list[str]:
    edges = [round(100 * i / QUALITY_BINS) for i in range(QUALITY_BINS + 1)]
    return ["none", *(f"{low}-{high}%" for low, high in itertools.pairwise(edges))]


def _bin(confidence_K: NDArray[np.float64]) -> int:
    """0 when no context is relevant, else 1 + the bin of the share, its upper end included."""
    relevant = int((confidence_K >= RELEVANT).sum())
    return -(-relevant * QUALITY_BINS // len(confidence_K)) if relevant else 0
