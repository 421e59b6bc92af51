"""MSRAG's study (Tables 1 to 3 and Figure 2).

Every source alone, without each, without segmentation, and selections beside each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.context_sources import GENERATED, NONE, WEB, SelectedSource
from common.errors import UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from harness.answer_selection.answer_texts import noted_probability
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.oracle import Oracle
from harness.context_sources.web import WebContext
from harness.evaluation.answer_scores import MEASURES, differences_table
from harness.evaluation.msrag.tables import (
    GOLD,
    INCLUSION,
    NOTES,
    RUNS,
    YES_NO,
    is_yes_no,
    majority_row,
    runs_table,
    scores_of,
    scores_table,
)
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import msrag as published
from harness.evaluation.study import Asked, Findings, Settings
from harness.evaluation.tables import ReportTable
from harness.interfaces import System
from harness.systems.msrag import Msrag
from models.pretrained import MINILM

OWN = "MSRAG"
NO_RAG, SR_RAG, GPT_RETRIEVAL, WEB_ALONE = "No-RAG", "SR-RAG", "GPT-Retrieval", "web alone"
SINGLE = {NONE: NO_RAG, GENERATED: GPT_RETRIEVAL, WEB: WEB_ALONE}  # the source alone is this row
WITHOUT = {GENERATED: "w/o GPT", WEB: "w/o Web", NONE: "w/o no-retrieval"}
UNSEGMENTED = "no segmentation"
UNFITTED, BY_GOLD = (f"{OWN}, {selector.name}" for selector in (EstimatedRelevance, Oracle))


class KnownOracle(Oracle):
    """The oracle; of a question without a gold answer, which has no score, the first source's answer."""

    def choose(self, questions: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> list[SelectedSource]:
        """As `Oracle.choose`."""
        known = [place for place, question in enumerate(questions) if question.answers]
        chosen = super().choose([questions[place] for place in known], [answers[place] for place in known])
        by_place = dict(zip(known, chosen, strict=True))
        unknown = [SelectedSource(next(iter(each)), "no gold answer is known") for each in answers]
        return [by_place.get(place, unknown[place]) for place in range(len(answers))]


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

    def check(self, system: Msrag, out: Path, layout: str) -> None:
        """Raise UserError if several runs would be equal."""
        if self.runs > 1 and not system.sampling:
            raise UserError(
                f"study.runs is {self.runs}, and no part of the system samples, so that all runs would be equal: omit "
                "study.runs, or give the reader or a source a temperature above 0."
            )

    def rows_of(self, system: Msrag) -> dict[tuple[str, ...], System]:
        """The rows by name; those of further runs by name and run."""
        return {
            (name, *([f"run {run + 1}"] if run else [])): made
            for run in range(self.runs)
            for name, made in self._rows_of_run(system.of_run(run)).items()
        }

    def _rows_of_run(self, system: Msrag) -> dict[str, Msrag]:
        """Single sources; by each selector all of them, without each, and without segmentation."""
        relevance, web = EstimatedRelevance(), system.sources.get(WEB)
        whole = web.unsegmented(summarized=True) if self.segmentation and isinstance(web, WebContext) else None
        rows = {SINGLE[source]: system.with_settings(sources=(source,), selector=relevance) for source in system.names}
        for selector in (system.selector, *([] if system.selector.uses_gold else [KnownOracle(self.encoder)])):
            own = system if selector is system.selector else system.with_settings(selector=selector)
            rows[f"{OWN}, {selector.name}"] = own
            for left_out in system.names if len(system.names) > 1 else ():
                rest = tuple(source for source in system.names if source != left_out)
                rows[f"{WITHOUT[left_out]}, {selector.name}"] = own.with_settings(sources=rest)
            if whole is not None:
                rows[f"{UNSEGMENTED}, {selector.name}"] = own.with_settings(web=whole)
        rows.setdefault(UNFITTED, system.with_settings(selector=relevance))
        if whole is not None:
            once = whole.unsegmented(summarized=False)
            rows[SR_RAG] = system.with_settings(sources=(WEB,), selector=relevance, web=once)
        return rows

    def measure(self, system: Msrag, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Score what each row answers; a question without a gold answer has no score."""
        found, (own, *_), _ = asked.found
        noted = any(
            noted_probability(each) is not None for row in found if row[0] in SINGLE.values() for each in found[row]
        )
        golds = sum(bool(question.answers) for question in questions)
        absent = {
            row for row, *_ in found if (row == UNFITTED and not noted) or (row.endswith(Oracle.name) and not golds)
        }
        rows = {row: given for (row, *run), given in found.items() if not run and (row == own or row not in absent)}
        asked.variants = {row: given for row, given in rows.items() if row != own}
        values = {
            row: np.stack([scores_of(given, questions, settings) for (name, *_), given in found.items() if name == row])
            for row in rows
        }
        findings = Findings()
        findings.tables = self._tables(system, questions, values, own, settings)
        findings.notes = NOTES.format(accuracy=YES_NO if is_yes_no(questions) else INCLUSION)
        findings.paper = OWN if published(settings.paper, 1) else ""
        findings.facts = [*system.facts, *(Oracle(self.encoder).facts if BY_GOLD in rows else [])]
        if BY_GOLD in rows and golds < len(questions):
            findings.facts.append(f"{BY_GOLD}: {len(questions) - golds:,} questions have no gold answer, and no score")
        if self.runs > 1:
            findings.notes += RUNS.format(runs=self.runs)
            parts = ", ".join(type(part).__name__ for part in system.sampling)
            findings.facts.append(f"runs: {self.runs}, with the samples of {parts}")
        findings.settings |= {"selector": system.selector.name, "sources": list(system.names), "runs": self.runs}
        findings.cases = [[_case(answer)] if "sources" in answer.notes else [] for answer in asked.answers]
        return findings

    def _tables(
        self,
        system: Msrag,
        questions: Sequence[Question],
        values: Mapping[str, NDArray[np.float64]],
        name: str,
        settings: Settings,
    ) -> list[ReportTable]:
        """Tables 1 to 3, Figure 2, differences and runs.

        Args:
            system: The system.
            questions: The questions.
            values: (R, 3, N) scores by row.
            name: Row of the system.
            settings: Of the evaluation.
        """
        means = {row: each.mean(axis=0) for row, each in values.items()}

        def some(*beginnings: str) -> dict[str, NDArray[np.float64]]:
            return {row: each for row, each in means.items() if row.startswith(beginnings)}

        paper, singles = settings.paper, [SINGLE[source] for source in system.names]
        tables = [
            scores_table("table 1", "Table 1: methods", some(NO_RAG, SINGLE[WEB], SR_RAG, OWN), settings,
                         published(paper, 1), majority_row(questions, settings)),
            scores_table("table 2", "Table 2: context of the model's own knowledge", some(NO_RAG, GPT_RETRIEVAL),
                         settings, published(paper, 2)),
            scores_table("table 3", "Table 3: each source left out", some(*WITHOUT.values(), OWN), settings,
                published(paper, 3)),
        ]  # fmt: skip
        if any(row.startswith(UNSEGMENTED) for row in values):
            shown = some(SINGLE[WEB], SR_RAG, UNSEGMENTED, OWN)
            tables.append(scores_table("segmentation", "Figure 2: with and without sub-questions", shown, settings))
        if len(singles) > 1:
            compared = {row: [*means[row]] for row in (name, *singles)}
            columns = [f"{measure.removesuffix(' %')}, points" for measure in MEASURES]
            title = f"Differences of {name} to single sources"
            own = f"differences - {name}"
            tables.append(differences_table(own, title, columns, compared, name, settings.bootstrap, of_it=True))
        if self.runs > 1:
            tables.append(runs_table(values))
        return tables


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
    gold = f" ({GOLD})" if answer.notes.get("uses_gold") else ""
    return QuestionCase(
        "Answers by source", columns, tuple(rows), f"chosen: {answer.notes['chosen']}, {answer.notes['why']}{gold}"
    )
