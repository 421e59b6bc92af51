"""MSRAG's study (Tables 1 to 3 and Figure 2).

Every source alone, without each, without segmentation, and selections beside each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.context_sources import GENERATED, NONE, WEB, SelectedSource
from common.errors import UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from harness.answer_selection.answer_texts import noted_probability
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.learned import LearnedSelector
from harness.answer_selection.oracle import Oracle
from harness.context_sources.web import WebContext
from harness.evaluation.answer_scores import MEASURES, differences_table, row_cells
from harness.evaluation.msrag import tables
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import published
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers
from harness.evaluation.tables import ReportTable
from harness.interfaces import System
from harness.systems.msrag import Msrag
from models.pretrained import MINILM

OWN, SR_RAG, UNSEGMENTED = "MSRAG", "SR-RAG", "no segmentation"
SINGLE = {NONE: "No-RAG", GENERATED: "GPT-Retrieval", WEB: "web alone"}  # the source alone is this row
WITHOUT = {GENERATED: "w/o GPT", WEB: "w/o Web", NONE: "w/o no-retrieval"}
UNFITTED, BY_GOLD = (f"{OWN}, {selector.name}" for selector in (EstimatedRelevance, Oracle))


class KnownOracle(Oracle):
    """The oracle; of a question without a gold answer, which has no score, the first source's answer."""

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """As `Oracle.choose`."""
        known = [place for place, question in enumerate(questions) if question.answers]
        chosen = [SelectedSource(next(iter(each)), "no gold answer is known") for each in answers]
        nearest = super().choose([questions[place] for place in known], [answers[place] for place in known])
        for place, choice in zip(known, nearest, strict=True):
            chosen[place] = choice
        return chosen


class Study:
    """Measures the system, its sources alone, its ablations, and selection by relevance and by the gold answer.

    Args:
        segmentation: Whether to measure the web without sub-questions, too (SR-RAG and Figure 2): one more search and
            one more reading.
        encoder: Of the oracle's cosines; folder or hub id.
        runs: How often every source is asked, with other samples each time; figures are means over the runs. Above 1
            only where a part samples.
    """

    def __init__(self, segmentation: bool = True, encoder: str = MINILM, runs: PositiveInt = 1) -> None:
        self.segmentation, self.encoder, self.runs = segmentation, encoder, runs

    def check(self, system: Msrag) -> None:
        """Raise UserError if several runs would be equal, MissingInputError if the fitted choice is missing."""
        if isinstance(system.selector, LearnedSelector):
            _ = system.selector.model
        if self.runs > 1 and not system.sampling:
            raise UserError(
                f"study.runs is {self.runs}, and no part of the system samples, so that all runs would be equal: omit "
                "study.runs, or give the reader or a source a temperature above 0."
            )

    def rows_of(self, system: Msrag) -> dict[tuple[str, ...], System]:
        """The rows by name; those of further runs by name and run."""
        further = {run: (f"run {run + 1}",) if run else () for run in range(self.runs)}
        rows = {run: self._of_run(system.of_run(run)) for run in further}
        return {(name, *further[run]): made for run, own in rows.items() for name, made in own.items()}

    def _of_run(self, system: Msrag) -> dict[str, Msrag]:
        """Every source alone; by each selector all of them, without each, and without segmentation."""
        unfitted, web = EstimatedRelevance(), system.sources.get(WEB)
        whole = web.unsegmented(summarized=True) if self.segmentation and isinstance(web, WebContext) else None
        rows = {SINGLE[source]: system.with_settings(sources=(source,), selector=unfitted) for source in system.names}
        for selector in system.selector, *([] if system.selector.uses_gold else [KnownOracle(self.encoder)]):
            by_it = system if selector is system.selector else system.with_settings(selector=selector)
            rows[f"{OWN}, {selector.name}"] = by_it
            for left_out in system.names if len(system.names) > 1 else ():
                others = tuple(source for source in system.names if source != left_out)
                rows[f"{WITHOUT[left_out]}, {selector.name}"] = by_it.with_settings(sources=others)
            if whole:
                rows[f"{UNSEGMENTED}, {selector.name}"] = by_it.with_settings(web=whole)
        rows.setdefault(UNFITTED, system.with_settings(selector=unfitted))
        if whole:
            once = {"sources": (WEB,), "web": whole.unsegmented(summarized=False)}
            rows[SR_RAG] = system.with_settings(selector=unfitted, **once)
        return rows

    def measure(self, system: Msrag, questions: Sequence[Question], asked: RowAnswers, settings: Settings) -> Findings:
        """Score what each row answers; a question without a gold answer has no score."""
        found, (own, *_) = asked.rows, asked.own
        alone = [each for (row, *_), given in found.items() if row in SINGLE.values() for each in given]
        noted = any(noted_probability(each) is not None for each in alone)
        unscored = sum(not question.answers for question in questions)
        by_run: dict[str, list[Sequence[Answer]]] = {}
        for (row, *_), given in found.items():
            absent = not noted if row == UNFITTED else Oracle.name in row and unscored == len(questions)
            if row == own or not absent:
                by_run.setdefault(row, []).append(given)
        values = {
            row: np.stack([tables.scores_of(given, questions, settings) for given in runs])
            for row, runs in by_run.items()
        }
        findings = Findings(paper=OWN if published("MSRAG, Table 1", settings.paper, ()) else "")
        findings.variants = {row: runs[0] for row, runs in by_run.items() if row != own}
        findings.tables = self._tables(system, values, own, settings)
        accuracy = tables.YES_NO if tables.is_yes_no(questions) else tables.INCLUSION
        findings.notes = tables.NOTES.format(accuracy=accuracy)
        if BY_GOLD in findings.variants:
            told = f"{BY_GOLD}: {unscored:,} questions have no gold answer, and no score"
            findings.facts += [*Oracle(self.encoder).facts, *([told] if unscored else [])]
        if self.runs > 1:
            findings.notes += tables.RUNS.format(runs=self.runs)
            parts = ", ".join(type(part).__name__ for part in system.sampling)
            findings.facts.append(f"runs: {self.runs}, with the samples of {parts}")
        findings.settings |= {"selector": system.selector.name, "sources": list(system.names), "runs": self.runs}
        findings.cases = [[_case(answer)] if "sources" in answer.notes else [] for answer in asked.answers]
        return findings

    def _tables(
        self, system: Msrag, values: Mapping[str, NDArray[np.float64]], own: str, settings: Settings
    ) -> list[ReportTable]:
        """Tables 1 to 3, Figure 2, differences and runs.

        Args:
            system: The system.
            values: (R, 3, N) scores by row.
            own: Row of the system.
            settings: Of the evaluation.
        """
        means = {row: each.mean(axis=0) for row, each in values.items()}

        def table(name: str, title: str, rows: tuple[str, ...], number: int | None = None) -> ReportTable:
            shown = {row: [*each] for row, each in means.items() if row.startswith(rows)}
            cells = row_cells(shown, settings.bootstrap)
            paper = published(f"MSRAG, Table {number}", settings.paper, ("EM", "F1", "Acc")) if number else {}
            return ReportTable(name, f"{title}, {settings.normalization}", MEASURES, cells, paper)

        no_rag, generated, web = SINGLE.values()
        made = [
            table("table 1", "Table 1: methods", (no_rag, web, SR_RAG, OWN), 1),
            table("table 2", "Table 2: context of the model's own knowledge", (no_rag, generated), 2),
            table("table 3", "Table 3: each source left out", (*WITHOUT.values(), OWN), 3),
        ]
        if any(row.startswith(UNSEGMENTED) for row in values):
            rows = web, SR_RAG, UNSEGMENTED, OWN
            made.append(table("segmentation", "Figure 2: with and without sub-questions", rows))
        if len(system.names) > 1:
            compared = {row: [*means[row]] for row in (own, *(SINGLE[source] for source in system.names))}
            columns = [f"{measure.removesuffix(' %')}, points" for measure in MEASURES]
            name, title = f"differences - {own}", f"Differences of {own} to single sources"
            made.append(differences_table(name, title, columns, compared, own, settings.bootstrap, of_it=True))
        return made + ([tables.runs_table(values)] if self.runs > 1 else [])


def _case(answer: Answer) -> QuestionCase:
    """The answers of all sources to one question, for the page."""
    columns = ("source", "answer", "score", "from")
    noted: Any = answer.notes["sources"]
    rows = []
    for each in noted:
        passages = "; ".join(passage.get("title") or passage["id"] for passage in each.get("passages", ()))
        score = f"{each['score']:.3f}" if "score" in each else ""
        rows.append(
            (each["source"], each["answer"], score, passages or str(each.get("missing") or each.get("error") or ""))
        )
    gold = f" ({tables.GOLD})" if answer.notes.get("uses_gold") else ""
    return QuestionCase(
        "Answers by source", columns, tuple(rows), f"chosen: {answer.notes['chosen']}, {answer.notes['why']}{gold}"
    )
