"""MSRAG's study (Tables 1 to 3 and Figure 2).

Every source alone, without each, without segmentation, and selections beside each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.progress import say
from common.ranges import PositiveFloat, PositiveInt
from common.records import Answer, Question
from common.sources import WEB
from harness.choice.agreement import Agreement
from harness.choice.answer_texts import noted_probability
from harness.choice.estimator import EstimatedRelevance
from harness.choice.features import answer_features
from harness.choice.learned import Learned, fit, out_of_fold
from harness.choice.oracle import Oracle
from harness.evaluation.msrag.asking import SINGLE_SEARCH, WHOLE_QUESTION, SourceAnswers, ask_sources, sampling_parts
from harness.evaluation.msrag.paper import published
from harness.evaluation.msrag.rows import (
    GPT_RETRIEVAL,
    NO_RAG,
    SINGLE,
    SR_RAG,
    UNSEGMENTED,
    WITHOUT,
    BySource,
    Row,
    chosen_row,
    replaced,
    row_of,
    single_rows,
    without,
)
from harness.evaluation.msrag.tables import (
    GOLD,
    INCLUSION,
    NOTES,
    RUNS,
    YES_NO,
    costs_table,
    differences_table,
    is_yes_no,
    kinds_table,
    majority_row,
    runs_table,
    scores_of,
    scores_table,
    sources_table,
)
from harness.evaluation.page import Case
from harness.evaluation.serialization import digest
from harness.evaluation.study import Findings, Settings
from harness.evaluation.tables import Table
from harness.interfaces import AnswerSelector
from harness.llm.conversation import with_turns
from harness.strategies.msrag import Msrag
from models.msrag.answer_model import is_answer_model
from models.pretrained import MINILM

if TYPE_CHECKING:
    from harness.choice.answer_encoder import AnswerEncoder

OWN, FITTED = "MSRAG", "learned, out of fold"


class Study:
    """Measures the system, its sources alone, its ablations, and selection by agreement, relevance and gold answer.

    Args:
        segmentation: Whether to measure the web without sub-questions, too (SR-RAG and Figure 2): one more search and
            one more reading.
        encoder: Of the cosines of the oracle and of `fit`; folder or hub id.
        fit: Fits a learned selection on these questions and writes it to this file; they must be validation questions.
            The report has what models reach that were fitted on four fifths of the questions, on the others.
        penalty: L2 of that fit.
        runs: How often every source is asked, with other samples each time; figures are means over the runs. Above 1
            only where a part samples.
    """

    def __init__(
        self,
        segmentation: bool = True,
        encoder: str = MINILM,
        fit: Path | None = None,
        penalty: PositiveFloat = 1.0,
        runs: PositiveInt = 1,
    ) -> None:
        if runs > 1 and fit is not None:
            raise UserError("study.fit takes the answers of one run: omit study.runs, or study.fit.")
        self.segmentation, self.encoder, self.fit, self.penalty, self.runs = segmentation, encoder, fit, penalty, runs

    def check(self, strategy: Msrag, out: Path, layout: str) -> None:
        """Raise UserError if several runs would be equal, or the file of `fit` is another one."""
        if self.runs > 1 and not _sampling(strategy):
            raise UserError(
                f"study.runs is {self.runs}, and no part of the system samples, so that all runs would be equal: omit "
                "study.runs, or give the reader or a source a temperature above 0."
            )
        if self.fit is not None and self.fit.exists() and not is_answer_model(self.fit):
            raise UserError(
                f"study.fit: {self.fit} exists and is no fitted selector: not replaced. Choose another file."
            )

    def measure(self, strategy: Msrag, questions: Sequence[Question], settings: Settings) -> Findings:
        """Ask every source once per run, and score what each row makes of the answers."""
        questions = [with_turns(question) for question in questions]
        runs = [ask_sources(strategy, questions, settings, self.segmentation, run) for run in range(self.runs)]
        from harness.choice.answer_encoder import AnswerEncoder

        encoder = AnswerEncoder(self.encoder)
        oracle = Oracle(loaded=encoder)
        has_gold = all(question.answers for question in questions)
        by_run = [self._rows(strategy, questions, found, encoder, oracle if has_gold else None) for found in runs]
        findings = Findings(seconds_before=sum(found.seconds_before for found in runs))
        if self.fit is not None:
            by_run[0][FITTED] = self._fitted(strategy, questions, runs[0].answers, settings, encoder, findings)
        common = [
            row for row in by_run[0] if all(row in each for each in by_run)
        ]  # a failed reading notes no P(relevant)
        by_run = [{row: each[row] for row in common} for each in by_run]
        name = f"{OWN}, {strategy.selector.name}"
        rows, own = by_run[0], by_run[0][name]
        values = {row: np.stack([scores_of(each[row].answers, questions, settings) for each in by_run]) for row in rows}
        findings.answers = own.answers
        findings.variants = {row: each.answers for row, each in rows.items() if row != name}
        findings.tables = self._tables(strategy, questions, runs, by_run, values, name, settings)
        findings.notes = NOTES.format(accuracy=YES_NO if is_yes_no(questions) else INCLUSION)
        findings.paper = OWN if published(settings.paper, 1, 0) else ""
        findings.facts = [*findings.facts, *_facts(strategy), *(oracle.facts if has_gold else [])]
        if self.runs > 1:
            findings.notes += RUNS.format(runs=self.runs)
            findings.facts.append(f"runs: {self.runs}, with the samples of {', '.join(_sampling(strategy))}")
        findings.settings |= {"selector": strategy.selector.name, "sources": list(strategy.names), "runs": self.runs}
        findings.cases = [[_case(answer)] for answer in own.answers]
        return findings

    def _rows(
        self,
        strategy: Msrag,
        questions: Sequence[Question],
        found: SourceAnswers,
        encoder: "AnswerEncoder",
        oracle: Oracle | None,
    ) -> dict[str, Row]:
        """The rows of one run."""
        answers, extra = found.answers, found.extra
        rows: dict[str, Row] = single_rows(answers)
        selectors = [strategy.selector, *([oracle] if oracle and not strategy.selector.uses_gold else [])]
        for selector in selectors:
            label = f", {selector.name}"
            rows[f"{OWN}{label}"] = chosen_row(questions, answers, selector)
            for source in strategy.names if len(strategy.names) > 1 else ():
                rows[f"{WITHOUT[source]}{label}"] = chosen_row(questions, without(answers, source), selector)
            if WHOLE_QUESTION in extra:
                changed = replaced(answers, WEB, extra[WHOLE_QUESTION])
                rows[f"{UNSEGMENTED}{label}"] = chosen_row(questions, changed, selector)
        for label, selector in _further_selectors(answers, encoder).items():
            rows.setdefault(f"{OWN}, {label}", chosen_row(questions, answers, selector))
        if SINGLE_SEARCH in extra:
            rows[SR_RAG] = Row(list(extra[SINGLE_SEARCH]))
        return rows

    def _fitted(
        self,
        strategy: Msrag,
        questions: Sequence[Question],
        answers: Sequence[BySource],
        settings: Settings,
        encoder: "AnswerEncoder",
        findings: Findings,
    ) -> Row:
        """Fit and write the learned selection; the row of the choices by models that have not seen the question."""
        from dataclasses import replace

        from harness.choice.estimator import ContextProbability

        assert self.fit is not None
        probability = getattr(strategy.selector, "probability", None) or ContextProbability(None)
        places = [place for place, question in enumerate(questions) if question.answers]
        asked, given = [questions[place] for place in places], [answers[place] for place in places]
        features = answer_features(questions, answers, encoder, probability)
        measure = 2 if is_yes_no(questions) else 0
        by_source = {s: scores_of([each[s] for each in given], asked, settings)[measure] for s in strategy.names}
        right = [{s: bool(by_source[s][n] == 1) for s in strategy.names} for n in range(len(asked))]
        known = [features[place] for place in places]
        model = fit(known, right, self.penalty)
        told = {"questions": len(asked), "sha256": digest(asked)[:12]}
        model = replace(model, encoder=encoder.name, encoder_sha256=encoder.recipe, fitted=told)
        chosen = dict(zip(places, out_of_fold(asked, given, known, right, self.penalty), strict=True))
        learned = Learned.of(model, encoder, probability)
        whole = learned.choose(questions, answers)
        model.save(self.fit)
        say(f"{self.fit}: the selection, fitted on {len(asked)} questions.")
        findings.facts.append(f"learned selection: {self.fit}, fitted on these {len(asked)} questions")
        return row_of(questions, answers, [chosen.get(n, each) for n, each in enumerate(whole)], learned)

    def _tables(
        self,
        strategy: Msrag,
        questions: Sequence[Question],
        runs: Sequence[SourceAnswers],
        by_run: Sequence[Mapping[str, Row]],
        values: Mapping[str, NDArray[np.float64]],
        name: str,
        settings: Settings,
    ) -> list[Table]:
        """Tables 1 to 3, Figure 2, differences, kinds of question, sources, runs and costs.

        Args:
            strategy: The system.
            questions: The questions.
            runs: The answers of every run.
            by_run: The rows of every run.
            values: (R, 3, N) scores by row.
            name: Row of the system.
            settings: Of the evaluation.
        """
        means = {row: each.mean(axis=0) for row, each in values.items()}

        def some(*beginnings: str) -> dict[str, NDArray[np.float64]]:
            return {row: each for row, each in means.items() if row.startswith(beginnings)}

        paper, singles = settings.paper, [SINGLE[source] for source in strategy.names]
        tables = [
            scores_table("table 1", "Table 1: methods", some(NO_RAG, SINGLE[WEB], SR_RAG, OWN, "learned"), settings,
                         published(paper, 1, 0), majority_row(questions, settings)),
            scores_table("table 2", "Table 2: context of the model's own knowledge", some(NO_RAG, GPT_RETRIEVAL),
                         settings, published(paper, 2, 0)),
            scores_table("table 3", "Table 3: each source left out", some(*WITHOUT.values(), OWN), settings,
                published(paper, 3, 0)),
        ]  # fmt: skip
        if any(row.startswith(UNSEGMENTED) for row in values):
            shown = some(SINGLE[WEB], SR_RAG, UNSEGMENTED, OWN)
            tables.append(scores_table("segmentation", "Figure 2: with and without sub-questions", shown, settings))
        compared = [name, *(row for row in (FITTED,) if row in values)]
        tables += [differences_table(row, means, singles, settings.bootstrap) for row in compared if len(singles) > 1]
        measure = 2 if is_yes_no(questions) else 0
        tables += kinds_table(questions, some(*singles, OWN, "learned"), measure, settings.bootstrap)
        if any(question.answers for question in questions):
            right = {source: values[SINGLE[source]][:, measure] for source in strategy.names}
            answers = [found.answers for found in runs]
            tables.append(sources_table(answers, [rows[name] for rows in by_run], right, settings.bootstrap))
        if self.runs > 1:
            tables.append(runs_table(values))
        return [*tables, costs_table(by_run)]


def _further_selectors(answers: Sequence[BySource], encoder: "AnswerEncoder") -> dict[str, AnswerSelector]:
    """Agreement; and the estimator's choice where the reader notes the probability of every context that it read."""
    found: dict[str, AnswerSelector] = {Agreement.name: Agreement(loaded=encoder)}
    read = [answer for each in answers for answer in each.values() if answer.evidence and answer.text]
    if read and all(noted_probability(answer) is not None for answer in read):
        found[EstimatedRelevance.name] = EstimatedRelevance()
        found[f"{EstimatedRelevance.name} without a threshold"] = EstimatedRelevance(threshold=0.0)
    return found


def _sampling(strategy: Msrag) -> list[str]:
    """The classes of the parts that sample."""
    return [type(part).__name__ for part in sampling_parts([strategy.reader, *strategy.sources.values()])]


def _facts(strategy: Msrag) -> list[str]:
    parts = [*strategy.sources.values(), strategy.selector]
    return [fact for part in parts for fact in getattr(part, "facts", ())]


def _case(answer: Answer) -> Case:
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
    return Case(
        "Answers by source", columns, tuple(rows), f"chosen: {answer.notes['chosen']}, {answer.notes['why']}{gold}"
    )
