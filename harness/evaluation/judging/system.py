"""One system, judged: its answers and its passages; and several, compared.

Shape legend: R rows, N questions.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.records import Answer, Passage, Question
from harness.evaluation.engine import MeasuredSystem, has_read
from harness.evaluation.judge import CREDIT, KINDS, Judge, Kind, Verdict
from harness.evaluation.judgements import Judgements
from harness.evaluation.judging.tables import (
    CORRECT,
    HALF,
    NO_READER,
    NOT_ASKED_FOR,
    compared_tables,
    costs_table,
    judged_table,
    kinds_table,
    not_judged,
    retrieval_rows,
)
from harness.evaluation.page import QuestionCase
from harness.evaluation.settings import Settings

_MEASURES = {CORRECT: "judged correct", HALF: "judged correct, half credit"}  # row -> its measure per question, 0 to 1
_WORDS = {True: "relevant", False: "not relevant"}


def judge_measured(judge: Judge | None, measured: MeasuredSystem, settings: Settings) -> None:
    """Judge a system's answers and passages.  Tables, measures per question and computing time are added to its own.

    Without a judge only the table that says so is added.

    Args:
        judge: Judges.
        measured: The system's results; the variants of its study are not judged.
        settings: Of the evaluation.
    """
    if judge is None:
        measured.tables.append(not_judged())
        return
    started, seconds_before = time.perf_counter(), judge.seconds_before
    judged = measured.judged = _judged(judge, measured, settings)
    measured.tables += judged.tables
    own = measured.measures[measured.word]
    names = _MEASURES | {row: row.removesuffix(" %") for row in retrieval_rows(judge.passages)}
    own |= {names[row]: values_N / 100 for row, values_N in judged.values.items() if row in names}
    measured.seconds += time.perf_counter() - started + judge.seconds_before - seconds_before


def _judged(judge: Judge, measured: MeasuredSystem, settings: Settings) -> Judgements:
    """The judge's verdicts on one system: each requested kind, on every question."""
    judged = Judgements([], judge.facts)
    found: dict[Kind, list[list[Verdict]]] = {}
    failed: dict[str, int] = {}
    rows: dict[Kind, Sequence[str]] = {"answers": (CORRECT, HALF), "passages": retrieval_rows(judge.passages)}
    for kind in KINDS:
        if reason := _not_judged(judge, kind, measured):
            judged.reasons |= dict.fromkeys(rows[kind], reason)
            continue
        values_RN, found[kind] = judged_values(judge, kind, measured.questions, measured.answers)
        judged.verdicts[kind] = [verdict for own in found[kind] for verdict in own]
        judged.values |= dict(zip(rows[kind], values_RN, strict=True))
        failed |= dict.fromkeys(rows[kind], sum(each.fields is None for each in judged.verdicts[kind]))
    judged.tables = [
        judged_table(judged, failed, settings.bootstrap),
        *kinds_table(judged, measured.questions, settings.bootstrap),
        costs_table(judged.verdicts),
    ]
    passages = [_first_passages(answer, judge.passages) for answer in measured.answers]
    of_question = [{kind: own[number] for kind, own in found.items()} for number in range(len(passages))]
    judged.records = [_record(*each) for each in zip(of_question, passages, strict=True)]
    judged.cases = [_case(*each) for each in zip(of_question, passages, strict=True)]
    judged.record = judge_record(judge, judged)
    return judged


def _not_judged(judge: Judge, kind: Kind, measured: MeasuredSystem) -> str:
    """Why a kind of verdict is not asked for; empty if it is."""
    if kind not in judge.prompts:
        return NOT_ASKED_FOR
    if kind == "passages":
        return "" if any(answer.evidence for answer in measured.answers) else "no passage was found"
    if not has_read(measured.answers):
        return NO_READER
    return "" if any(question.answers for question in measured.questions) else "no question has a gold answer"


def judged_values(
    judge: Judge, kind: Kind, questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[NDArray[np.float64], list[list[Verdict]]]:
    """The values of a kind's rows, and the verdicts on each question: on its passages, or on its answer.

    An empty answer is wrong without asking, and one without gold answers is not judged.

    Args:
        judge: Judges.
        kind: Of the verdicts.
        questions: The questions.
        answers: With the passages.

    Returns:
        (R, N) in per cent, NaN where they are undefined; lists of verdicts by question.
    """
    asked = [*zip(questions, answers, strict=True)]
    cases: list[list[tuple[Question, Any]]]
    if kind == "passages":
        cases = [[(question, each) for each in _first_passages(answer, judge.passages)] for question, answer in asked]
    else:
        cases = [[(question, answer.text)] * bool(question.answers and answer.text) for question, answer in asked]
    ask = judge.on_answers if kind == "answers" else judge.on_passages
    rest = iter(ask([case for own in cases for case in own]))
    verdicts = [[*islice(rest, len(own))] for own in cases]
    values = [_values(kind, question, own, judge.passages) for question, own in zip(questions, verdicts, strict=True)]
    return np.array(values, dtype=np.float64).T, verdicts


def _values(kind: Kind, question: Question, verdicts: Sequence[Verdict], k: int) -> Sequence[float]:
    """The values of a kind's rows for one question, NaN where a failed verdict leaves them open."""
    if kind == "passages":
        return [100 * each for each in hit_and_precision([relevant_by(verdict) for verdict in verdicts], k)]
    credit = credit_by(verdicts[0]) if verdicts else 0.0 if question.answers else nan  # an empty answer is wrong
    return [100 * (credit == 1) if credit == credit else nan, 100 * credit]


def _first_passages(answer: Answer, k: int) -> list[Passage]:
    """The first k passages; one that occurs several times counts once."""
    return [*{hit.passage.id: hit.passage for hit in answer.evidence}.values()][:k]


def hit_and_precision(relevant: Sequence[bool | None], k: int) -> tuple[float, float]:
    """Judged H@k and P@k of one question, 0 to 1; NaN where a failed verdict (None) leaves them open."""
    unknown = None in relevant
    return 1.0 if True in relevant else nan if unknown else 0.0, nan if unknown else relevant.count(True) / k


def credit_by(verdict: Verdict) -> float:
    """The credit of an answer, 0 to 1; NaN after a failure."""
    return CREDIT[verdict.fields["verdict"]] if verdict.fields else nan


def relevant_by(verdict: Verdict) -> bool | None:
    """Whether the judge finds a passage relevant; None after a failure."""
    return bool(verdict.fields["relevant"]) if verdict.fields else None


def _record(found: Mapping[Kind, Sequence[Verdict]], passages: Sequence[Passage]) -> dict[str, object]:
    """The entry of one question in questions.jsonl."""
    record: dict[str, object] = {}
    for kind, verdicts in found.items():
        shown = [dict(each.fields) if each.fields else {"failure": each.failure} for each in verdicts]
        if kind == "passages" and shown:
            record[kind] = [{"id": each.id, **own} for each, own in zip(passages, shown, strict=True)]
        elif shown:
            record["answer" if kind == "answers" else kind] = shown[0]
    return {"judge": record}


def _case(found: Mapping[Kind, Sequence[Verdict]], passages: Sequence[Passage]) -> list[QuestionCase]:
    """The entry of one question on the page."""
    rows = [("answer", _word(each, "verdict"), _why(each)) for each in found.get("answers", ())]
    rows += [
        (f"passage {place}: {passage.title}", _word(each, "relevant"), _why(each))
        for place, (passage, each) in enumerate(zip(passages, found.get("passages", ()), strict=False), start=1)
    ]
    return [QuestionCase("Judged by a language model", ("what", "verdict", "reason"), tuple(rows))] if rows else []


def _word(verdict: Verdict, field: str) -> str:
    value = verdict.fields[field] if verdict.fields else "failed"
    return _WORDS[value] if isinstance(value, bool) else str(value)


def _why(verdict: Verdict) -> str:
    return str(verdict.fields.get("reason", "")) if verdict.fields else verdict.failure


def judge_record(judge: Judge, judged: Judgements) -> dict[str, object]:
    """The judge and its verdicts, for report.json."""
    means: dict[str, float | None] = {
        row: float(np.nanmean(values_N)) if not np.isnan(values_N).all() else None
        for row, values_N in judged.values.items()
    }
    asked = {each.key: each for verdicts in judged.verdicts.values() for each in verdicts}
    return {
        "model": judge.llm.name,
        "prompts": {kind: {"name": prompt.name, "hash": prompt.hash} for kind, prompt in judge.prompts.items()},
        "passages": judge.passages,
        "means": means,
        "verdicts": len(asked),
        "failures": dict(Counter(each.failure for each in asked.values() if each.failure)),
    }


def judge_several(judge: Judge | None, measured: Mapping[str, MeasuredSystem], settings: Settings) -> Judgements:
    """Compare all verdicts on several systems.

    Args:
        judge: Has judged every system; None if there is none.
        measured: System -> its results, on the same questions.
        settings: Of the evaluation.
    """
    judged = {name: each.judged for name, each in measured.items() if each.judged}
    if judge is None or not judged:
        return Judgements([not_judged()])
    names = dict.fromkeys(name for each in judged.values() for name in each.verdicts)
    every = {name: [v for each in judged.values() for v in each.verdicts.get(name, ())] for name in names}
    whole = Judgements([], judge.facts, verdicts=every)
    whole.tables = [*compared_tables(judged, settings.bootstrap), costs_table(every)]
    means = {name: judge_record(judge, each)["means"] for name, each in judged.items()}
    whole.record = judge_record(judge, whole) | {"means": means}
    return whole
