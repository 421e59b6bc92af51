"""Detection of unanswerable questions: RE-RAG's Tables 4 and 5.

A question is unanswerable for a ranker if none of its selected contexts contains an answer; it is predicted
unanswerable if no context's confidence reaches the threshold. Where all sets or none hold an answer, there is nothing
to detect: the tables say so. Shape legend: N questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import Bootstrap, percent_cells
from harness.evaluation.rerag.candidates import CandidateSet, Ranker
from harness.evaluation.tables import Cell, Cells, Table, not_measured
from models.rerag.unanswerable import THRESHOLDS, Detection, best_refusal_threshold, detection, sweep

EVERY, NONE = "every set holds an answer", "no set holds an answer"


@dataclass(frozen=True, slots=True)
class Confidence:
    """One ranker's greatest confidence per question, with the true labels."""

    name: str
    max_N: NDArray[np.float64]  # greatest confidence; -inf without contexts
    answerable_N: NDArray[np.bool_]
    exact_N: NDArray[np.float64] | None  # EM with the ranker's contexts and weights; None without a generator
    threshold: float | None  # chosen on other questions, or given; None if there is none
    source: str = "exported"  # where the threshold is from

    @classmethod
    def of(
        cls,
        name: str,
        ranker: Ranker,
        candidate_sets: Sequence[CandidateSet],
        confidences: Sequence[NDArray[np.float64]],
        contexts: int,
        exact_N: NDArray[np.float64] | None,
        threshold: float | None = None,
        source: str = "exported",
    ) -> "Confidence":
        """Computed from the confidences in all candidates."""
        selected = [each.order(ranker)[:contexts] for each in candidate_sets]
        answerable = [each.has_answer_C[rows].any() for each, rows in zip(candidate_sets, selected, strict=True)]
        return cls(
            name,
            np.array([each[rows].max(initial=-np.inf) for each, rows in zip(confidences, selected, strict=True)]),
            np.array(answerable, dtype=bool),
            exact_N,
            threshold,
            source,
        )

    @property
    def used(self) -> tuple[float, str]:
        """The threshold used in Table 5, and its source."""
        if self.threshold is not None:
            return self.threshold, self.source
        return best_refusal_threshold(self.max_N, self.answerable_N)[0], "best on these questions"

    @property
    def one_kind(self) -> str:
        """Why nothing can be detected among these questions.

        Empty if there are sets with and sets without an answer.
        """
        if self.answerable_N.all():
            return EVERY
        return "" if self.answerable_N.any() else NONE

    @property
    def no_threshold(self) -> str:
        """Why no threshold can be used; empty if there is one, or one can be chosen on these questions."""
        return f"no threshold is exported, and {self.one_kind}" if self.threshold is None and self.one_kind else ""


def refusal_tables(
    systems: Sequence[Confidence], bootstrap: Bootstrap, paper: paper_figures.Paper | None
) -> list[Table]:
    """Tables 4 and 5.

    Args:
        systems: The estimator first, then the retriever.
        bootstrap: For the intervals.
        paper: Adds this paper's published results.
    """
    tables = [_detection_table(systems, paper)]
    if all(system.exact_N is not None for system in systems):
        tables.append(_refusal_table(systems, bootstrap, paper))
    return tables


def _detection_table(systems: Sequence[Confidence], paper: paper_figures.Paper | None) -> Table:
    columns = ("recall %", "precision %", "F1 %")
    rows: dict[str, Cells] = {}
    for system in systems:
        if system.one_kind:
            rows[system.name] = [not_measured(system.one_kind)] * len(columns)
            continue
        swept = sweep(system.max_N, system.answerable_N)
        if system.threshold is not None:
            fixed = detection(system.max_N, system.answerable_N, system.threshold)
            rows[f"{system.name}, {system.source} threshold {system.threshold:g}"] = _detection_cells(fixed)
        best = best_refusal_threshold(system.max_N, system.answerable_N)[0]
        for each in swept:
            mark = " (best F1 here)" if each.threshold == best else ""
            rows[f"{system.name}, {each.threshold:g}{mark}"] = _detection_cells(each)
    counts = ", ".join(f"{s.name} {int((~s.answerable_N).sum()):,} of {len(s.answerable_N):,}" for s in systems)
    note = f"Sets without an answer: {counts}."
    if not all(system.one_kind for system in systems):
        note += (
            " An exported threshold was chosen on validation questions. The best threshold on these questions, of "
            f"{THRESHOLDS[0]:g} to {THRESHOLDS[-1]:g}, is optimistic; the paper does not say on which questions it "
            "searched."
        )
    title = "Detection of context sets without an answer (Table 4)"
    return Table("detection", title, columns, rows, paper_figures.re_rag(paper, 4, (0, 1, 2)), note)


def _detection_cells(result: Detection) -> Cells:
    precision = Cell(100 * result.precision) if result.refused else not_measured("none refused")
    return [Cell(100 * result.recall), precision, Cell(100 * result.f1)]


def _refusal_table(systems: Sequence[Confidence], bootstrap: Bootstrap, paper: paper_figures.Paper | None) -> Table:
    columns = ("with answer", "EM % before", "EM % after", "without answer", "refused %")
    rows: dict[str, Cells] = {}
    for system in systems:
        if system.no_threshold:
            rows[system.name] = [not_measured(system.no_threshold)] * len(columns)
            continue
        assert system.exact_N is not None
        threshold, source = system.used
        exact_N, refused_N, with_N = system.exact_N, system.max_N < threshold, system.answerable_N
        before_N, after_N = exact_N[with_N], (exact_N * ~refused_N)[with_N]
        before, after = percent_cells(np.stack([before_N, after_N]), bootstrap, NONE)
        (refused,) = percent_cells(refused_N[~with_N][None].astype(float), bootstrap, EVERY)
        rows[f"{system.name}, threshold {threshold:g} ({source})"] = [
            Cell(int(with_N.sum())), before, after, Cell(int((~with_N).sum())), refused,
        ]  # fmt: skip
    return Table(
        "refusal",
        "Refusal of unanswerable questions (Table 5)",
        columns,
        rows,
        paper_figures.re_rag(paper, 5, (None, 0, 1, None, 2)),
        "EM on sets with an answer, before and after refusal; share of refused questions among sets without an answer.",
    )
