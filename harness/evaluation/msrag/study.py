"""MSRAG's study (Tables 1 to 3 and Figure 2).

Every source alone, without each, without segmentation, and selections beside each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.context_sources import GENERATED, NONE, WEB
from common.errors import UserError
from common.ranges import PositiveInt
from common.records import Answer, Question
from harness.answer_selection.answer_texts import noted_probability
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.oracle import Oracle
from harness.evaluation.answer_scores import MEASURES, differences_table
from harness.evaluation.msrag.source_answers import (
    SINGLE_SEARCH,
    WHOLE_QUESTION,
    SourceAnswers,
    ask_sources,
    sampling_parts,
)
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
from harness.interfaces import AnswerSelector
from harness.runtime.turns import with_turns
from harness.systems.msrag import Msrag, chosen_answer
from models.pretrained import MINILM

OWN = "MSRAG"
NO_RAG, SR_RAG, GPT_RETRIEVAL, WEB_ALONE = "No-RAG", "SR-RAG", "GPT-Retrieval", "web alone"
SINGLE = {NONE: NO_RAG, GENERATED: GPT_RETRIEVAL, WEB: WEB_ALONE}  # the source alone is this row
WITHOUT = {GENERATED: "w/o GPT", WEB: "w/o Web", NONE: "w/o no-retrieval"}
UNSEGMENTED = "no segmentation"
BySource = Mapping[str, Answer]
Rows = dict[str, list[Answer]]  # every row is what a system that is configured like it answers, with its costs


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
        if self.runs > 1 and not _sampling(system):
            raise UserError(
                f"study.runs is {self.runs}, and no part of the system samples, so that all runs would be equal: omit "
                "study.runs, or give the reader or a source a temperature above 0."
            )

    def ask(self, system: Msrag, questions: Sequence[Question], settings: Settings) -> Asked:
        """Ask every source once per run; every row is a choice among these answers."""
        questions = [with_turns(question, system) for question in questions]
        runs = [ask_sources(system, questions, settings, self.segmentation, run) for run in range(self.runs)]
        oracle = Oracle(self.encoder)
        has_gold = all(question.answers for question in questions)
        read = [answer for found in runs for each in found.answers for answer in each.values()]
        noted = any(noted_probability(answer) is not None for answer in read)
        unfitted = EstimatedRelevance() if noted else None
        by_run = [self._rows(system, questions, found, oracle if has_gold else None, unfitted) for found in runs]
        name = f"{OWN}, {system.selector.name}"
        rows = by_run[0]
        variants = {row: each for row, each in rows.items() if row != name}
        facts = [*_facts(system), *(oracle.facts if has_gold else [])]
        return Asked(rows[name], variants, sum(found.seconds_before for found in runs), (by_run, facts))

    def measure(self, system: Msrag, questions: Sequence[Question], asked: Asked, settings: Settings) -> Findings:
        """Score the answer that each row chooses."""
        by_run, facts = asked.found
        rows, name = by_run[0], f"{OWN}, {system.selector.name}"
        questions = [with_turns(question) for question in questions]
        values = {row: np.stack([scores_of(each[row], questions, settings) for each in by_run]) for row in rows}
        findings = Findings()
        findings.tables = self._tables(system, questions, values, name, settings)
        findings.notes = NOTES.format(accuracy=YES_NO if is_yes_no(questions) else INCLUSION)
        findings.paper = OWN if published(settings.paper, 1) else ""
        findings.facts = facts
        if self.runs > 1:
            findings.notes += RUNS.format(runs=self.runs)
            findings.facts.append(f"runs: {self.runs}, with the samples of {', '.join(_sampling(system))}")
        findings.settings |= {"selector": system.selector.name, "sources": list(system.names), "runs": self.runs}
        findings.cases = [[_case(answer)] for answer in asked.answers]
        return findings

    def _rows(
        self,
        system: Msrag,
        questions: Sequence[Question],
        found: SourceAnswers,
        oracle: Oracle | None,
        unfitted: EstimatedRelevance | None,
    ) -> Rows:
        """The rows of one run."""
        answers, extra = found.answers, found.extra
        rows: Rows = {SINGLE[source]: [each[source] for each in answers] for source in system.names}
        selectors = [system.selector, *([oracle] if oracle and not system.selector.uses_gold else [])]
        for selector in selectors:
            label = f", {selector.name}"
            rows[f"{OWN}{label}"] = _chosen(questions, answers, selector)
            for left_out in system.names if len(system.names) > 1 else ():
                others = [{name: own for name, own in each.items() if name != left_out} for each in answers]
                rows[f"{WITHOUT[left_out]}{label}"] = _chosen(questions, others, selector)
            if WHOLE_QUESTION in extra:
                changed = [{**each, WEB: whole} for each, whole in zip(answers, extra[WHOLE_QUESTION], strict=True)]
                rows[f"{UNSEGMENTED}{label}"] = _chosen(questions, changed, selector)
        if unfitted:
            rows.setdefault(f"{OWN}, {unfitted.name}", _chosen(questions, answers, unfitted))
        if SINGLE_SEARCH in extra:
            rows[SR_RAG] = list(extra[SINGLE_SEARCH])
        return rows

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


def _chosen(questions: Sequence[Question], answers: Sequence[BySource], selector: AnswerSelector) -> list[Answer]:
    """The answers that a selector chooses."""
    chosen = selector.choose(questions, answers)
    return [chosen_answer(*each, selector) for each in zip(questions, answers, chosen, strict=True)]


def _sampling(system: Msrag) -> list[str]:
    """The classes of the parts that sample."""
    return [type(part).__name__ for part in sampling_parts([system.reader, *system.sources.values()])]


def _facts(system: Msrag) -> list[str]:
    parts = [*system.sources.values(), system.selector]
    alone = getattr(system.reader, "closed_book", None) if NONE in system.names else None
    facts = [f"without a context: {alone.fact}"] if alone else []
    return facts + [fact for part in parts for fact in getattr(part, "facts", ())]


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
