"""MSRAG's study (Tables 1 to 3 and Figure 2): every source alone, without each, without segmentation, and selections beside each other."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.checks import check_above
from common.errors import UserError
from common.progress import say
from common.records import Answer, Question
from common.sources import WEB
from harness.choice.agreement import Agreement
from harness.choice.answer_texts import noted_probability
from harness.choice.estimator import EstimatedRelevance
from harness.choice.features import answer_features
from harness.choice.learned import Learned, fit, out_of_fold
from harness.choice.oracle import Oracle
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
    YES_NO,
    costs_table,
    differences_table,
    is_yes_no,
    majority_row,
    scores_of,
    scores_table,
    sources_table,
)
from harness.evaluation.page import Case
from harness.evaluation.serialization import digest, pack_answer, unpack_answer
from harness.evaluation.study import Findings, Settings
from harness.interfaces import AnswerSelector
from harness.llm.conversation import with_turns
from harness.runtime.provenance import configuration, hardware
from harness.runtime.resumable import ResumableBatches
from harness.sources.web import WebContext
from harness.strategies.msrag import Msrag
from models.msrag.answer_model import is_answer_model
from models.pretrained import MINILM

QUESTIONS_AT_ONCE = 64
OWN = "MSRAG"
_SINGLE_SEARCH, _WHOLE_QUESTION = (
    "single search",
    "question searched",
)  # further answers: SR-RAG's, and without segmentation


class Study:
    """Measures the system, its sources alone, its ablations, and selections by agreement, relevance and the gold answer.

    Args:
        segmentation: Whether to measure the web without sub-questions, too (SR-RAG and Figure 2): one more search and one more reading.
        encoder: Of the cosines of the oracle and of `fit`; folder or hub id.
        fit: Fits a learned selection on these questions and writes it to this file; they must be validation questions.  The report has what
            models reach that were fitted on four fifths of the questions, on the others.
        penalty: L2 of that fit.
    """

    def __init__(
        self, segmentation: bool = True, encoder: str = MINILM, fit: Path | None = None, penalty: float = 1.0
    ) -> None:
        self.segmentation, self.encoder, self.penalty = segmentation, encoder, penalty
        self.fit = None if fit is None else Path(fit)

    @staticmethod
    def check_options(fit: Path | None, penalty: float) -> None:
        """Raise UserError if a value is out of range, or something else is at `fit`."""
        check_above(0, penalty=penalty)
        if fit is not None and Path(fit).exists() and not is_answer_model(Path(fit)):
            raise UserError(f"study.fit: {fit} exists and is no fitted selector: not replaced. Choose another file.")

    def measure(self, strategy: Msrag, questions: Sequence[Question], settings: Settings) -> Findings:
        """Ask every source once, and score what each row makes of the answers."""
        questions = [with_turns(question) for question in questions]
        answers, extra, seconds_before = self._ask(strategy, questions, settings)
        from harness.choice.answer_encoder import AnswerEncoder

        encoder = AnswerEncoder(self.encoder)
        own = chosen_row(questions, answers, strategy.selector)
        name = f"{OWN}, {strategy.selector.name}"
        rows: dict[str, Row] = {**single_rows(answers), name: own}
        oracle = Oracle(loaded=encoder)
        known = [place for place, question in enumerate(questions) if question.answers]
        has_gold = len(known) == len(questions)
        selectors = [strategy.selector, *([oracle] if has_gold and not strategy.selector.uses_gold else [])]
        for selector in selectors:
            label = f", {selector.name}"
            rows[f"{OWN}{label}"] = chosen_row(questions, answers, selector)
            for source in strategy.names if len(strategy.names) > 1 else ():
                rows[f"{WITHOUT[source]}{label}"] = chosen_row(questions, without(answers, source), selector)
            if _WHOLE_QUESTION in extra:
                changed = replaced(answers, WEB, extra[_WHOLE_QUESTION])
                rows[f"{UNSEGMENTED}{label}"] = chosen_row(questions, changed, selector)
        for selector in _further_selectors(answers, encoder):
            if selector.name != strategy.selector.name:
                rows[f"{OWN}, {selector.name}"] = chosen_row(questions, answers, selector)
        if _SINGLE_SEARCH in extra:
            rows[SR_RAG] = Row(list(extra[_SINGLE_SEARCH]))
        values = {row: scores_of(each.answers, questions, settings) for row, each in rows.items()}
        findings = Findings(own.answers, seconds_before=seconds_before)
        if self.fit is not None:
            fitted = self._fitted(strategy, questions, answers, settings, encoder, findings)
            rows["learned, out of fold"], values["learned, out of fold"] = (
                fitted,
                scores_of(fitted.answers, questions, settings),
            )
        findings.variants = {row: each.answers for row, each in rows.items() if row != name}
        findings.tables = self._tables(strategy, questions, answers, rows, values, name, settings)
        findings.notes = NOTES.format(accuracy=YES_NO if is_yes_no(questions) else INCLUSION)
        findings.paper = OWN if published(settings.paper, 1, 0) else ""
        findings.facts = [*_facts(strategy), *(oracle.facts if has_gold else [])]
        findings.settings |= {"selector": strategy.selector.name, "sources": list(strategy.names)}
        findings.cases = [[_case(answer)] for answer in own.answers]
        return findings

    def _ask(
        self, strategy: Msrag, questions: Sequence[Question], settings: Settings
    ) -> tuple[list[dict[str, Answer]], dict[str, list[Answer]], float]:
        """The answers of every source, and of further ways to search, in resumable batches; and the seconds of an interrupted run."""
        further = self._further(strategy)

        def work(batch: Sequence[Question]) -> list[dict[str, Any]]:
            contexts, alone = strategy.gather(batch, together=False)
            found = strategy.read(batch, contexts, alone)
            others = {name: _searched(strategy, web, batch) for name, web in further.items()}
            return [
                {name: pack_answer(question, answer) for name, answer in each.items()}
                | {name: pack_answer(question, own[place]) for name, own in others.items()}
                for place, (question, each) in enumerate(zip(batch, found, strict=True))
            ]

        saved = ResumableBatches()
        if (system := configuration(strategy)) is not None:
            parts: dict[str, object] = {**strategy.sources, "reader": strategy.reader}
            recipes = {f"{name} recipe": each.recipe for name, each in parts.items() if hasattr(each, "recipe")}
            asked = {key: value for key, value in system.items() if key != "selector"}
            depends_on = {
                **asked,
                **recipes,
                "further": [*further],
                "questions": digest(questions),
                "hardware": hardware(),
            }
            saved = ResumableBatches(settings.partial / "sources.jsonl", depends_on)
        batches = [
            questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)
        ]
        packed = [*itertools.chain.from_iterable(saved.run(batches, work, "answering from every source, batches"))]
        rows = [
            {name: unpack_answer(question, each) for name, each in own.items()}
            for question, own in zip(questions, packed, strict=True)
        ]
        answers = [{name: row[name] for name in strategy.names} for row in rows]
        return answers, {name: [row[name] for row in rows] for name in further}, saved.seconds

    def _further(self, strategy: Msrag) -> dict[str, WebContext]:
        """The web searched with the whole question: as SR-RAG does, and with the summary where the system makes one."""
        web = strategy.sources.get(WEB)
        if not self.segmentation or not isinstance(web, WebContext):
            return {}
        return {_SINGLE_SEARCH: web.unsegmented(summarized=False), _WHOLE_QUESTION: web.unsegmented(summarized=True)}

    def _fitted(
        self,
        strategy: Msrag,
        questions: Sequence[Question],
        answers: Sequence[BySource],
        settings: Settings,
        encoder: Any,
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
        answers: Sequence[BySource],
        rows: Mapping[str, Row],
        values: Mapping[str, np.ndarray],
        name: str,
        settings: Settings,
    ) -> list:
        """Tables 1 to 3, Figure 2, differences, sources and costs."""

        def some(*beginnings: str) -> dict[str, np.ndarray]:
            return {row: each for row, each in values.items() if row.startswith(beginnings)}

        paper, singles = settings.paper, [SINGLE[source] for source in strategy.names]
        tables = [
            scores_table("table 1", "Table 1: methods", some(NO_RAG, SR_RAG, OWN, "learned"), settings, published(paper, 1, 0),
                         majority_row(questions, settings)),
            scores_table("table 2", "Table 2: context of the model's own knowledge", some(NO_RAG, GPT_RETRIEVAL), settings,
                         published(paper, 2, 0)),
            scores_table("table 3", "Table 3: each source left out", some(*WITHOUT.values(), OWN), settings, published(paper, 3, 0)),
        ]  # fmt: skip
        if _has_unsegmented(values):
            shown = some(SINGLE[WEB], SR_RAG, UNSEGMENTED, OWN)
            tables.append(scores_table("segmentation", "Figure 2: with and without sub-questions", shown, settings))
        compared = [name, *(row for row in ("learned, out of fold",) if row in values)]
        tables += [differences_table(row, values, singles, settings.bootstrap) for row in compared if len(singles) > 1]
        measure = 2 if is_yes_no(questions) else 0
        right = {source: values[SINGLE[source]][measure] for source in strategy.names}
        if any(question.answers for question in questions):
            tables.append(sources_table(answers, rows[name], right, settings.bootstrap))
        return [*tables, costs_table(rows)]


def _further_selectors(answers: Sequence[BySource], encoder: Any) -> list[AnswerSelector]:
    """Agreement; and the estimator's choice where the reader notes the probability of every context that it read."""
    read = [answer for each in answers for answer in each.values() if answer.evidence and answer.text]
    noted = bool(read) and all(noted_probability(answer) is not None for answer in read)
    return [Agreement(loaded=encoder), *([EstimatedRelevance()] if noted else [])]


def _has_unsegmented(values: Mapping[str, object]) -> bool:
    return any(row.startswith(UNSEGMENTED) for row in values)


def _searched(strategy: Msrag, web: WebContext, questions: Sequence[Question]) -> list[Answer]:
    """The answers from the web, searched in another way."""
    contexts = {WEB: web.contexts(questions)}
    rows = strategy.read(questions, contexts, None, (WEB,))
    return [each[WEB] for each in rows]


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
