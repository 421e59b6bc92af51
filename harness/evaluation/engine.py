"""The evaluation of any system: its answers, its own study, and the scores that all systems share."""

import itertools
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.progress import track
from common.records import Answer, Question
from harness.evaluation.answer_scores import MEASURES, answer_tables, answer_values, costs_table, withheld_tables
from harness.evaluation.controls import Controls, verdict
from harness.evaluation.judgements import Judgements
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import answers as paper_answers
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.retrieval_tables import evidence_table
from harness.evaluation.serialization import digest, pack_answer, unpack_answer
from harness.evaluation.study import NOT_ASKED, Asked, Findings, Settings, Study, word_of
from harness.evaluation.tables import ReportTable, not_measured
from harness.interfaces import System
from harness.retrievers.corpora import passages_of
from harness.runtime.failures import Apart, FailedQuestions, as_answers, failure_of, may_be_of_one, with_cut_notes
from harness.runtime.memo import Memo, settled
from harness.runtime.provenance import configuration, hardware, models_of
from harness.runtime.resumable import ResumableBatches

QUESTIONS_AT_ONCE = 64

Measures = dict[str, NDArray[np.float64]]  # measure -> value per question, 0 to 1, NaN where it is undefined


@dataclass(slots=True)
class MeasuredSystem:
    """One system, measured.  All lists have one entry per question."""

    word: str
    questions: list[Question]
    asked: Asked
    findings: Findings
    tables: list[ReportTable]
    measures: dict[str, Measures]  # by system: the system itself first, under its word, then the variants of its study
    seconds: float  # computing time, that of interrupted runs included
    facts: list[str] = field(default_factory=list)  # on the questions (first, the same for all systems) and the indexes
    verdict: str = ""  # on the trained part: `harness.evaluation.controls`
    judged: Judgements | None = None  # None without a judge
    read: int = 0  # number of questions read, those without gold answers and gold passages included

    @property
    def answers(self) -> Sequence[Answer]:
        """Of the system itself."""
        return self.asked.answers

    @property
    def failed(self) -> FailedQuestions:
        """The questions that failed or were cut."""
        failed = FailedQuestions()
        failed.add(self.questions, self.answers)
        return failed

    @property
    def systems(self) -> dict[str, Sequence[Answer]]:
        """The answers of the system itself and of its study's variants, by name."""
        return {self.word: self.asked.answers, **self.asked.variants}

    def cases_of(self, number: int) -> Sequence[QuestionCase]:
        """The study's tables about one question, and the judge's."""
        own = self.findings.cases[number] if self.findings.cases else ()
        return [*own, *(self.judged.cases_of(number) if self.judged else ())]


def measure(system: System, questions: Sequence[Question], study: Study | None, settings: Settings) -> MeasuredSystem:
    """Ask the system, score all answers, let its study make tables of them, and control its trained part.

    Args:
        system: The system.
        questions: Those with gold answers or gold passages.
        study: The system's own; None if it has none.
        settings: Shared by all systems.
    """
    started = time.perf_counter()
    places: Sequence[int] = getattr(study, "scorable", lambda _, asked: range(len(asked)))(system, questions)
    if rows := getattr(study, "rows_of", None):
        asked = ask_rows(system, rows(system), questions, settings.shared_memo())
    else:
        places, asked = _asked_by_study(system, questions, places, study, settings)
    scorable = [questions[place] for place in places]
    findings = study.measure(system, scorable, asked, settings) if study else Findings()
    if rows:
        findings.facts += _failed_elsewhere(*asked.found[:2])
    asked.found = None  # may hold all that was retrieved
    word, indexed = word_of(system), indexed_passages(system)
    measures = {name: measures_of(scorable, given, settings, indexed) for name, given in asked.variants.items()}
    if len(scorable) < len(questions):
        measures = {
            name: {key: np.array(_spread([*each], places, [np.nan] * len(questions))) for key, each in own.items()}
            for name, own in measures.items()
        }
        _ask_the_others(system, questions, places, asked, findings, settings)
    answers = asked.answers = with_cut_notes(system, questions, asked.answers)
    verdict, controls = _controlled(system, questions, answers, settings)
    measures = {word: measures_of(questions, answers, settings, indexed)} | measures
    costs = costs_table(answers)
    tables = [
        *controls,
        *_answer_tables(questions, answers, settings, findings),
        evidence_table(questions, answers, settings, indexed),
        *([costs] if costs else []),
    ]
    seconds = asked.seconds_before + time.perf_counter() - started
    tables += findings.tables
    return MeasuredSystem(word, list(questions), asked, findings, tables, measures, seconds, verdict=verdict)


def ask_rows(system: System, rows: Mapping[Hashable, System], questions: Sequence[Question], memo: Memo) -> Asked:
    """The answers of the rows of a study, of which one is the system itself.

    All rows are asked a batch of questions before the next one, with one memo, so that each part computes once what
    several rows need. Costs are those that a row has by itself.

    Args:
        system: One of the rows.
        rows: By what its study calls them, in the order in which they are asked.
        questions: All of them.
        memo: Of this evaluation.
    """
    found: dict[Hashable, list[Answer]] = {row: [] for row in rows}
    apart = {row: Apart(made.answer) for row, made in rows.items()}
    for made in rows.values():
        made.memo = memo  # type: ignore[attr-defined]
    try:
        starts = range(0, len(questions), QUESTIONS_AT_ONCE)
        for start in track(starts, len(starts), "answering, batches"):
            batch = questions[start : start + QUESTIONS_AT_ONCE]
            for row in rows:
                found[row] += as_answers(batch, apart[row](batch))
            memo.end_batch()
        for each in apart.values():
            each.end()
    finally:
        for made in rows.values():
            made.memo = None  # type: ignore[attr-defined]
    answers = {row: [settled(answer) for answer in each] for row, each in found.items()}
    own = next(row for row, made in rows.items() if made is system)
    for question, answer in zip(questions, answers[own], strict=True):
        _check_excluded(system, question, answer)
    return Asked(answers[own], {}, memo.seconds_before, (answers, own, memo))


def _failed_elsewhere(answers: Mapping[Hashable, Sequence[Answer]], own: Hashable) -> list[str]:
    """What is said of questions that failed in some row, and not in the system's own."""
    lines = []
    for row, each in answers.items():
        pairs = zip(each, answers[own], strict=True)
        failed = [(one.question_id, why) for one, known in pairs if (why := failure_of(one)) and not failure_of(known)]
        if failed:
            name = ", ".join(map(str, row)) if isinstance(row, tuple) else row
            lines.append(f"{name}: {len(failed):,} questions failed, which have nothing there: {': '.join(failed[0])}")
    return lines


def _controlled(
    system: System, questions: Sequence[Question], answers: Sequence[Answer], settings: Settings
) -> tuple[str, list[ReportTable]]:
    """What the trained part of a system is worth, in a line, and the table of its controls."""
    configured = configuration(system)

    def ask_row(made: System, asked: Sequence[Question], row: str) -> Sequence[Answer]:
        kept = {**configured, "row": row, "of": digest(questions)} if configured and row else None
        return ask(made, asked, settings, f"controls, {row}.jsonl", depends_on=kept).answers

    found = Controls(system, lambda asked, given: answer_values(asked, given, settings)[0], ask_row).rows(
        questions, answers
    )
    if isinstance(found, str):
        return f"controls: none, {found}", []
    line, table = verdict(found, settings.bootstrap)
    return line, [table]


def _asked_by_study(
    system: System, questions: Sequence[Question], places: Sequence[int], study: Study | None, settings: Settings
) -> tuple[Sequence[int], Asked]:
    """The answers to the questions at some places, and these places.

    Where a question ends a study that asks itself, those that the system cannot answer are left out.
    """
    scorable = [questions[place] for place in places]
    own = getattr(study, "ask", None)
    if not scorable or own is None:
        return places, ask(system, scorable, settings) if scorable else Asked([])
    try:
        return places, own(system, scorable, settings)
    except Exception as error:
        checked = checked_answers(system, scorable, settings, error, lambda asked, part: own(system, asked, part))
        places = [place for place, each in zip(places, checked, strict=True) if not failure_of(each)]
        return places, own(system, [questions[place] for place in places], settings)


def checked_answers(
    system: System,
    questions: Sequence[Question],
    settings: Settings,
    error: Exception,
    work: Callable[[Sequence[Question], Settings], object],
) -> Sequence[Answer]:
    """A system's answers to the questions after work on all of them has raised an error; some say that it failed.

    Args:
        system: The system.
        questions: All of them.
        settings: Of the work.
        error: Was raised.
        work: The work over some questions.

    Raises:
        Exception: This error, if it may not be of one question, or the system fails on none or on all.
    """
    if not may_be_of_one(error) or (type(error) is UserError and not _works_for_one(work, questions, settings)):
        raise error
    checked = ask(system, questions, settings, "checked.jsonl").answers
    if not 0 < sum(1 for each in checked if failure_of(each)) < len(questions):
        raise error
    return checked


def _works_for_one(
    work: Callable[[Sequence[Question], Settings], object], questions: Sequence[Question], settings: Settings
) -> bool:
    """Whether work succeeds on the first, the middle or the last question alone; if not, an option may be wrong."""
    with TemporaryDirectory() as folder:
        for place in {0, len(questions) // 2, len(questions) - 1}:
            try:
                work([questions[place]], replace(settings, partial=Path(folder)))
            except Exception:
                continue
            return True
    return False


def _ask_the_others(
    system: System,
    questions: Sequence[Question],
    places: Sequence[int],
    asked: Asked,
    findings: Findings,
    settings: Settings,
) -> None:
    """Ask the system alone the questions that its study cannot score, and fill the places of these in all lists.

    Args:
        system: The system.
        questions: All of them.
        places: Of the questions that the study has scored.
        asked: What was answered to these.
        findings: What the study found of these.
        settings: Of the evaluation.
    """
    count = len(questions)
    others = sorted({*range(count)} - {*places})
    rest = ask(system, [questions[place] for place in others], settings, "others.jsonl", others_succeed=bool(places))
    answers = dict(zip([*places, *others], [*asked.answers, *rest.answers], strict=True))
    asked.answers = [answers[place] for place in range(count)]
    asked.seconds_before += rest.seconds_before
    asked.variants = {name: _spread(each, places, [NOT_ASKED] * count) for name, each in asked.variants.items()}
    findings.records = _spread(findings.records, places, [{}] * count) if findings.records else ()
    findings.cases = _spread(findings.cases, places, [()] * count) if findings.cases else ()
    if places:
        told = f"study: {len(places):,} of {count:,} questions; the others have nothing that it can score"
        findings.facts.append(told)


def _spread(values: Sequence[Any], places: Sequence[int], absent: Sequence[Any]) -> list[Any]:
    """The values at their places among those of all questions."""
    known = dict(zip(places, values, strict=True))
    return [known.get(place, value) for place, value in enumerate(absent)]


def indexed_passages(system: System) -> int | None:
    """Number of passages that a system ranks, of the first index that it searches; None if it searches none."""
    passages = passages_of(getattr(system, "retriever", None))
    return None if passages is None else len(passages)


def measures_of(
    questions: Sequence[Question], answers: Sequence[Answer], settings: Settings, indexed: int | None = None
) -> Measures:
    """EM, F1 and accuracy by the chosen normalization, and retrieval scores over all of the evidence, per question.

    With the number of `indexed` passages, the Log-Rank Index too.

    EM, F1 and accuracy are undefined for questions without gold answers, and for a system without a reader.
    """
    scored = answer_values(questions, answers, settings)
    measures: Measures = dict(zip(("EM", "F1", "Acc"), scored if has_read(answers) else scored * np.nan, strict=True))
    most = max((len(answer.evidence) for answer in answers), default=0) or 1
    retrieved = retrieval_scores(questions, [answer.evidence for answer in answers], (most,), indexed=indexed)
    names = {"recall": "recall of gold", "hit": "hit", "has-answer": "has-answer recall"}
    measures |= {name: retrieved[f"{key}@{most}"] for key, name in names.items()}
    measures["MRR"] = retrieved["MRR"]
    measures["Log-Rank"] = retrieved.get("Log-Rank", np.full(len(questions), np.nan))
    return measures


def has_read(answers: Sequence[Answer]) -> bool:
    """Whether a reader gave one of the answers, or failed to; it may have given an empty text."""
    return any(each.text or each.logprob is not None or each.costs.get("failed_calls") for each in answers)


def _answer_tables(
    questions: Sequence[Question], answers: Sequence[Answer], settings: Settings, findings: Findings
) -> list[ReportTable]:
    """EM, F1 and accuracy over the questions with gold answers; the reason where there are none."""
    places = [place for place, question in enumerate(questions) if question.answers]
    reason = "" if places else "no question has a gold answer"
    if places and not has_read([answers[place] for place in places]):
        reason = "the system has no reader"
    if reason:
        tables = [ReportTable("answers", "Answers", MEASURES, {"ours": [not_measured(reason)] * len(MEASURES)})]
    else:
        tables = answer_tables([questions[place] for place in places], [answers[place] for place in places], settings)
    if settings.paper is not None and not findings.paper:
        tables[0].paper = paper_answers(settings.paper, findings.budget)
    return [*tables, *(withheld_tables(questions, answers, settings) if has_read(answers) else [])]


def _check_excluded(system: System, question: Question, answer: Answer) -> None:
    """Raise UserError if a system retrieves a question itself that is to be left out; other sources may repeat it."""
    found = (hit.passage for hit in answer.evidence if not hit.passage.source)
    if question.exclude_self and any(question.is_itself(passage) for passage in found):
        raise UserError(
            f"{word_of(system)} retrieves question {question.id!r} itself: with exclude_self it must search by "
            "common.retrieval.search_for, which leaves it out."
        )


def ask(
    system: System,
    questions: Sequence[Question],
    settings: Settings,
    file: str = "answers.jsonl",
    others_succeed: bool = False,
    depends_on: Mapping[str, object] | None = None,
) -> Asked:
    """A system's answers, asked in resumable batches.

    Args:
        system: The system.
        questions: Those to ask.
        settings: The answers are kept in its folder.
        file: Name of the file in which they are kept.
        others_succeed: Whether other questions have been answered: these may all fail.
        depends_on: Of which configuration the kept answers are; of the system's own where None.
    """

    apart = Apart(system.answer)
    apart.succeeded = others_succeed

    def work(batch: Sequence[Question]) -> list[dict]:
        answers = as_answers(batch, apart(batch))
        for question, answer in zip(batch, answers, strict=True):
            _check_excluded(system, question, answer)
        return [pack_answer(question, answer) for question, answer in zip(batch, answers, strict=True)]

    configured = configuration(system) if depends_on is None else depends_on
    saved = ResumableBatches()
    if configured is not None:
        recipes = {f"{name} recipe": part.recipe for name, part in models_of(system).items() if hasattr(part, "recipe")}
        kept = {**configured, "questions": digest(questions), "hardware": hardware(), **recipes}
        saved = ResumableBatches(settings.partial / file, kept)
    batches = [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]
    packed = itertools.chain.from_iterable(saved.run(batches, work, "answering, batches"))
    answers = [unpack_answer(question, each) for question, each in zip(questions, packed, strict=True)]
    apart.end()
    return Asked(answers, seconds_before=saved.seconds)
