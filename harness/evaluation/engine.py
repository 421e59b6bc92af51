"""The evaluation of any system: its answers, its own study, and the scores that all systems share."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.progress import track
from common.records import Answer, Question
from harness.evaluation.answer_scores import (
    MEASURES,
    answer_tables,
    answer_values,
    costs_table,
    has_read,
    withheld_tables,
)
from harness.evaluation.controls import Controls, verdict
from harness.evaluation.judging import Judgements, judgements
from harness.evaluation.page import QuestionCase
from harness.evaluation.paper_figures import answers as paper_answers
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.retrieval_tables import evidence_table
from harness.evaluation.serialization import digest, pack_answer, unpack_answer
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers, Study, word_of
from harness.evaluation.tables import ReportTable, not_measured
from harness.evaluation.trec import trec_scores
from harness.interfaces import System
from harness.retrievers.corpora import passages_of
from harness.runtime.failures import (
    FailedQuestions,
    Failure,
    as_answers,
    each_apart,
    failure_of,
    may_be_of_one,
    telling_what_is_kept,
)
from harness.runtime.long_questions import with_cut_notes
from harness.runtime.memo import FOR_STUDY, Memo, has_succeeded, settled

QUESTIONS_AT_ONCE = 64

Measures = dict[str, NDArray[np.float64]]  # measure -> value per question, 0 to 1, NaN where it is undefined


@dataclass(slots=True)
class MeasuredSystem:
    """One system, measured.  All lists have one entry per question."""

    word: str
    questions: list[Question]
    systems: dict[str, Sequence[Answer]]  # the system's own answers under its word, then the variants of its study
    findings: Findings
    tables: list[ReportTable]
    measures: dict[str, Measures]  # by system, in the same order
    seconds: float  # computing time, that of interrupted runs included
    facts: list[str] = field(default_factory=list)  # on the questions (first, the same for all systems) and the indexes
    verdict: str = ""  # on the trained part: `harness.evaluation.controls`
    judged: Judgements = field(default_factory=Judgements)
    read: int = 0  # number of questions read, those without gold answers and gold passages included

    @property
    def answers(self) -> Sequence[Answer]:
        """Of the system itself."""
        return self.systems[self.word]

    @property
    def failed(self) -> FailedQuestions:
        """The questions that failed or were cut."""
        failed = FailedQuestions()
        failed.add(self.questions, self.answers)
        return failed

    def cases_of(self, number: int) -> Sequence[QuestionCase]:
        """The study's tables about one question, and the judge's."""
        return [each for cases in (self.findings.cases, self.judged.cases) if cases for each in cases[number]]


def measure(system: System, questions: Sequence[Question], study: Study | None, settings: Settings) -> MeasuredSystem:
    """Ask the system and the other rows of its study, score and judge all answers, and control the trained part.

    Args:
        system: The system.
        questions: Those with gold answers or gold passages.
        study: The system's own; None if it has none.
        settings: Shared by all systems.
    """
    started, memo, word = time.perf_counter(), settings.shared_memo(), word_of(system)
    reused = settings.seconds_of_verdicts
    made = study.rows_of(system) if study else {word: system}
    own = next((row for row, each in made.items() if each is system), None)
    if own is None:
        raise TypeError(f"{type(study).__name__}.rows_of({word}) has no row with the system that it was given")
    asked = RowAnswers(ask_rows(made, questions, memo, whole=study is None, own=system), own, memo)
    with telling_what_is_kept(_kept(len(questions), questions, memo)):  # it may ask a judge
        findings = study.measure(system, questions, asked, settings) if study else Findings()
    findings.facts += _failed_elsewhere(asked)
    answers = with_cut_notes(system, questions, shown(asked.answers))
    variants, indexed = {name: shown(each) for name, each in findings.variants.items()}, indexed_passages(system)
    del asked  # may hold all that was retrieved
    verdict, controls = _controlled(system, questions, answers, settings, memo)
    systems: dict[str, Sequence[Answer]] = {word: answers, **variants}
    with telling_what_is_kept(_kept(len(questions), questions, memo)):
        judged = judgements(settings.judge, questions, answers, settings.bootstrap)
    tables = [
        *controls,
        *_answer_tables(questions, answers, settings, findings),
        evidence_table(questions, answers, settings, indexed),
        costs_table({word: answers}),
        *findings.tables,
        *judged.tables,
    ]
    measures = {name: measures_of(questions, each, settings, indexed) for name, each in systems.items()}
    measures[word] |= judged.measures
    seconds = memo.seconds_before + settings.seconds_of_verdicts - reused + time.perf_counter() - started
    return MeasuredSystem(word, list(questions), systems, findings, tables, measures, seconds, [], verdict, judged)


def ask_rows(
    rows: Mapping[Any, System],
    questions: Sequence[Question],
    memo: Memo,
    whole: bool = False,
    own: System | None = None,
) -> dict[Any, list[Answer]]:
    """The answers of the rows of a study.

    All rows are asked a batch of questions before the next one, with one memo, so that each part computes once what
    several rows need. Costs are those that a row has by itself.

    Args:
        rows: By what the study calls them, in the order in which they are asked.
        questions: All of them.
        memo: Of this evaluation.
        whole: Whether answers are remembered, instead of what the parts compute for them.
        own: The row that must not retrieve what `exclude_self` leaves out; None checks none.

    Raises:
        UserError: If this one does, or if one of the rows answers no question: its first error.
    """
    found: dict[Any, list[Answer]] = {row: [] for row in rows}
    of_parts = {row: made for row, made in rows.items() if not whole and hasattr(type(made), "memo")}
    ask = {row: made.answer if row in of_parts else _remembered(made, memo) for row, made in rows.items()}
    for made in of_parts.values():
        made.memo = memo  # type: ignore[attr-defined]
    lost: dict[Any, list[Failure]] = {row: [] for row in rows}
    try:
        starts = range(0, len(questions), QUESTIONS_AT_ONCE)
        for start in track(starts, len(starts), "answering, batches"):
            batch = questions[start : start + QUESTIONS_AT_ONCE]
            with telling_what_is_kept(_kept(start, questions, memo)):
                for row, made in rows.items():
                    results = each_apart(ask[row], batch, first=start == 0)
                    answers = as_answers(batch, results)
                    if made is own:
                        _check_excluded(own, batch, answers)
                    lost[row] += [each for each in results if isinstance(each, Failure)]
                    found[row] += answers
            memo.end_batch()
    finally:
        for made in of_parts.values():
            made.memo = None  # type: ignore[attr-defined]
    for each in lost.values():
        if own is not None and len(each) == len(questions) > 0:
            error = each[0].error  # one of time is an error of the system, too, and would be taken for one of writing
            raise error if isinstance(error, UserError) else UserError(each[0].reason) from error
    return {row: [settled(answer) for answer in each] for row, each in found.items()}


def _kept(done: int, questions: Sequence[Question], memo: Memo) -> str:
    """What is kept of the questions that have been asked; empty: nothing."""
    return f"What was computed for {done:,} of {len(questions):,} questions is kept" if memo.folder else ""


def _remembered(system: System, memo: Memo) -> Callable[[Sequence[Question]], Sequence[Answer]]:
    """`System.answer` whose answers are remembered."""

    def ask(questions: Sequence[Question]) -> list[Answer]:
        def work(places: Sequence[int]) -> list[Any]:
            asked = [questions[place] for place in places]
            return [pack_answer(*each) for each in zip(asked, system.answer(asked), strict=True)]

        keys, values = [digest([question]) for question in questions], memo.of("answers", system)
        packed = values(keys, work, None, QUESTIONS_AT_ONCE, lasts=has_succeeded)
        return [unpack_answer(*each) for each in zip(questions, packed, strict=True)]

    return ask


def shown(answers: Sequence[Answer]) -> list[Answer]:
    """The answers without what only the tables of a study need."""
    notes = [{name: note for name, note in answer.notes.items() if name != FOR_STUDY} for answer in answers]
    return [replace(answer, notes=each) for answer, each in zip(answers, notes, strict=True)]


def _failed_elsewhere(asked: RowAnswers) -> list[str]:
    """What is said of questions that failed in some row, and not in the system's own."""
    lines = []
    for row, each in asked.rows.items():
        pairs = zip(each, asked.answers, strict=True)
        failed = [(one.question_id, why) for one, known in pairs if (why := failure_of(one)) and not failure_of(known)]
        if failed:
            name = ", ".join(map(str, row)) if isinstance(row, tuple) else row
            lines.append(f"{name}: {len(failed):,} questions failed, which have nothing there: {': '.join(failed[0])}")
    return lines


def _controlled(
    system: System, questions: Sequence[Question], answers: Sequence[Answer], settings: Settings, memo: Memo
) -> tuple[str, list[ReportTable]]:
    """What the trained part of a system is worth, in a line, and the table of its controls."""

    def ask(made: System, asked: Sequence[Question]) -> Sequence[Answer]:
        return ask_rows({"": made}, asked, memo)[""]

    controls = Controls(system, lambda asked, given: answer_values(asked, given, settings)[0], ask)
    found = controls.rows(questions, answers)
    if isinstance(found, str):
        return f"controls: none, {found}", []
    line, table = verdict(found, settings.bootstrap)
    return line, [table]


def indexed_passages(system: System) -> int | None:
    """Number of passages that a system ranks, of the first index that it searches; None if it searches none."""
    passages = passages_of(getattr(system, "retriever", None))
    return None if passages is None else len(passages)


def measures_of(
    questions: Sequence[Question], answers: Sequence[Answer], settings: Settings, indexed: int | None = None
) -> Measures:
    """EM, F1 and accuracy by the chosen normalization, and retrieval scores over all of the evidence, per question.

    With the number of `indexed` passages, the Log-Rank Index too. Also the figures of ir-measures.

    EM, F1 and accuracy are undefined for questions without gold answers, and for a system without a reader.
    """
    scored = answer_values(questions, answers, settings)
    measures: Measures = dict(zip(("EM", "F1", "Acc"), scored if has_read(answers) else scored * np.nan, strict=True))
    most = max((len(answer.evidence) for answer in answers), default=0) or 1
    found = retrieval_scores(questions, [answer.evidence for answer in answers], (most,), indexed=indexed)
    return measures | {
        "recall of gold": found[f"recall@{most}"],
        "hit": found[f"hit@{most}"],
        "has-answer recall": found[f"has-answer@{most}"],
        "MRR": found["MRR"],
        "Log-Rank": found.get("Log-Rank", np.full(len(questions), np.nan)),
        **trec_scores(questions, answers, settings.min_grade),
    }


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
        tables[0].paper = paper_answers(settings.paper)
    return [*tables, *(withheld_tables(questions, answers, settings) if has_read(answers) else [])]


def _check_excluded(system: System, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
    """Raise UserError if a system retrieves a question itself that is to be left out; other sources may repeat it."""
    for question, answer in zip(questions, answers, strict=True):
        found = (hit.passage for hit in answer.evidence if not hit.passage.source)
        if question.source.exclude_self and any(question.is_itself(passage) for passage in found):
            raise UserError(
                f"{word_of(system)} retrieves question {question.id!r} itself: with exclude_self it must search by "
                "common.retrieval.search_for, which leaves it out."
            )


def answers_after(
    error: Exception, system: System, questions: Sequence[Question], settings: Settings
) -> Sequence[Answer]:
    """A system's answers to the questions after work on all of them has raised an error; some say that it failed.

    An error of the user's is of an option, not of a question, where the system answers all of the first batch.

    Args:
        error: Was raised.
        system: The system.
        questions: All of them.
        settings: Of the work.

    Raises:
        Exception: This error, if it may not be of one question, or the system fails on none or on all.
    """
    if not may_be_of_one(error):
        raise error
    first, memo = questions[:QUESTIONS_AT_ONCE], settings.shared_memo()
    for asked in (first, questions) if type(error) is UserError else (questions,):
        answers = ask_rows({"": system}, asked, memo)[""]
        if all(map(failure_of, answers)) or not any(map(failure_of, answers)):
            raise error
    return answers
