"""A judge's verdicts on the answers and passages of a system: values per question, tables, records, costs.

Shape legend: R rows, N questions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.records import Answer, Passage, Question
from harness.evaluation.answer_scores import has_read, masks_of_kinds, row_cells
from harness.evaluation.judge import CREDIT, KINDS, Judge, Kind, Verdict
from harness.evaluation.page import QuestionCase
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured

NO_JUDGE = "no judge is configured; type --judge.llm with a language model"
NO_READER = "the system has no reader"
NOT_ASKED_FOR = "the judge is not asked for it (--judge.verdicts)"
TITLE = "Judged by a language model"
CORRECT, HALF = "answers correct %", "answers correct %, half credit"
_MEASURES = {CORRECT: "judged correct", HALF: "judged correct, half credit"}  # row -> its measure per question, 0 to 1
_WORDS = {True: "relevant", False: "not relevant"}
_COSTS = {  # costs of a verdict that are counted -> their columns
    "model_calls": "calls", "repairs": "repairs", "tokens": "tokens read", "reply_tokens": "tokens written",
}  # fmt: skip
_NOTE = f"""\
{CORRECT}: FreshQA's accuracy as DMQR-RAG has it scored; with half credit for partly correct answers: HiQA's accuracy. \
H@k: a relevant passage is among the first k; P@k: relevant passages among the first k, divided by k. A question whose \
verdict failed does not count."""
_COSTS_NOTE = """\
Each request is asked once, also if several systems need its verdict, which is then charged to each of them. Calls: \
repairs included. No US dollars: the model has no price in its config. Seconds: shares of the time of batches."""

Values = NDArray[np.float64]


@dataclass(slots=True)
class Judgements:
    """A judge's verdicts on one system. All lists and arrays have one entry per question."""

    tables: list[ReportTable] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    measures: dict[str, Values] = field(default_factory=dict)  # (N,), 0 to 1, NaN: undefined
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)  # what was judged -> its verdicts
    cases: Sequence[Sequence[QuestionCase]] = ()  # for the page
    records: Sequence[Mapping[str, object]] = ()  # for questions.jsonl
    record: dict[str, object] = field(default_factory=dict)  # for report.json


def judgements(
    judge: Judge | None, questions: Sequence[Question], answers: Sequence[Answer], bootstrap: Bootstrap
) -> Judgements:
    """The judge's verdicts on a system's answers and passages; without a judge the table that says so.

    Args:
        judge: Judges.
        questions: All of them.
        answers: The system's own; the variants of its study are not judged.
        bootstrap: For the intervals.
    """
    if judge is None:
        return Judgements([not_judged()])
    found: dict[Kind, list[list[Verdict]]] = {}
    values: dict[str, Values] = {}  # row -> (N,), 0 to 1
    rows: dict[str, Cells] = {}
    for kind in KINDS:
        names = (CORRECT, HALF) if kind == "answers" else tuple(f"judged {at}@{judge.passages} %" for at in "HP")
        if reason := _not_judged(judge, kind, questions, answers):
            rows |= dict.fromkeys(names, [not_measured(reason)] * 3)
            continue
        values_RN, found[kind] = judged_values(judge, kind, questions, answers)
        own = dict(zip(names, values_RN, strict=True))
        failed = Cell(sum(each.fields is None for verdicts in found[kind] for each in verdicts))
        for name, (cell,) in row_cells({name: [each_N] for name, each_N in own.items()}, bootstrap).items():
            count = Cell(int((~np.isnan(own[name])).sum()))
            rows[name] = [cell or not_measured("all verdicts failed"), count, failed]
        values |= own
    rows = {name: rows[name] for name in sorted(rows, key=lambda name: name not in values)}  # reasons last
    verdicts: dict[str, list[Verdict]] = {kind: [v for own in each for v in own] for kind, each in found.items()}
    measures = {_MEASURES.get(row, row.removesuffix(" %")): each_N for row, each_N in values.items()}
    tables = [ReportTable("judged", TITLE, ("mean", "questions", "failed verdicts"), rows, note=_NOTE)]
    tables += [*_by_kind(values, questions, bootstrap), judge_costs_table(verdicts)]
    passages = [_first_passages(answer, judge.passages) for answer in answers]
    of_question = [{kind: own[number] for kind, own in found.items()} for number in range(len(passages))]
    means = {
        row: 100 * float(np.nanmean(each_N)) if not np.isnan(each_N).all() else None for row, each_N in values.items()
    }
    return Judgements(
        tables, judge.facts, measures, verdicts, [_case(*each) for each in zip(of_question, passages, strict=True)],
        [_record(*each) for each in zip(of_question, passages, strict=True)], judge_record(judge, verdicts, means),
    )  # fmt: skip


def not_judged() -> ReportTable:
    """The table of an evaluation without a judge."""
    return ReportTable("judged", TITLE, ("mean",), {"ours": [not_measured(NO_JUDGE)]})


def _not_judged(judge: Judge, kind: Kind, questions: Sequence[Question], answers: Sequence[Answer]) -> str:
    """Why a kind of verdict is not asked for; empty if it is."""
    if kind not in judge.prompts:
        return NOT_ASKED_FOR
    if kind == "passages":
        return "" if any(answer.evidence for answer in answers) else "no passage was found"
    if not has_read(answers):
        return NO_READER
    return "" if any(question.answers for question in questions) else "no question has a gold answer"


def judged_values(
    judge: Judge, kind: Kind, questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[Values, list[list[Verdict]]]:
    """The values of a kind's rows, and the verdicts on each question: on its passages, or on its answer.

    An empty answer is wrong without asking, and one without gold answers is not judged.

    Args:
        judge: Judges.
        kind: Of the verdicts.
        questions: The questions.
        answers: With the passages.

    Returns:
        (R, N), 0 to 1, NaN where they are undefined; lists of verdicts by question.
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
        relevant = [bool(each.fields["relevant"]) if each.fields else None for each in verdicts]
        return hit_and_precision(relevant, k)
    credit = 0.0 if question.answers else nan  # an empty answer is wrong
    for each in verdicts:
        credit = CREDIT[each.fields["verdict"]] if each.fields else nan
    return float(credit == 1) if credit == credit else nan, credit


def _first_passages(answer: Answer, k: int) -> list[Passage]:
    """The first k passages; one that occurs several times counts once."""
    return [*{hit.passage.id: hit.passage for hit in answer.evidence}.values()][:k]


def hit_and_precision(relevant: Sequence[bool | None], k: int) -> tuple[float, float]:
    """Judged H@k and P@k of one question, 0 to 1; NaN where a failed verdict (None) leaves them open."""
    unknown = None in relevant
    return 1.0 if True in relevant else nan if unknown else 0.0, nan if unknown else relevant.count(True) / k


def _by_kind(values: Mapping[str, Values], questions: Sequence[Question], bootstrap: Bootstrap) -> list[ReportTable]:
    """Judged answers by kind of question, the most frequent first; no table of one kind or without judged answers."""
    kinds = masks_of_kinds(questions)
    if CORRECT not in values or len(kinds) < 2:
        return []
    of_kind = {kind: [np.where(mask_N, values[row], nan) for row in (CORRECT, HALF)] for kind, mask_N in kinds.items()}
    cells = row_cells(of_kind, bootstrap)
    rows: dict[str, Cells] = {kind: [Cell(int(mask_N.sum())), *cells[kind]] for kind, mask_N in kinds.items()}
    title = "Answers judged correct, by kind of question"
    return [ReportTable("judged by kind", title, ("questions", CORRECT, HALF), rows)]


def judge_costs_table(
    verdicts: Mapping[str, Sequence[Verdict]], name: str = "judge costs", title: str = "Costs of judging"
) -> ReportTable:
    """What the verdicts cost: calls, tokens, US dollars, seconds; equal requests count once.

    Args:
        verdicts: What was judged -> its verdicts.
        name: Of the table.
        title: Its heading.
    """
    rows = {kind: _costs(each) for kind, each in verdicts.items()}
    rows["all"] = _costs([each for of_kind in verdicts.values() for each in of_kind])
    columns = ("verdicts", "failed", *_COSTS.values(), "US dollars", "seconds")
    decimals = {"US dollars": 4, "seconds": 1}
    return ReportTable(name, title, columns, rows, note=_COSTS_NOTE, column_decimals=decimals)


def _costs(verdicts: Iterable[Verdict]) -> list[Cell | None]:
    asked = [*{each.key: each for each in verdicts}.values()]
    counts = [len(asked), sum(each.fields is None for each in asked)]
    counts += [int(sum(each.costs.get(name, 0.0) for each in asked)) for name in _COSTS]
    priced = [each.costs["usd"] for each in asked if "usd" in each.costs]
    return [*map(Cell, counts), Cell(sum(priced)) if priced else None, Cell(sum(each.seconds for each in asked))]


def _record(found: Mapping[Kind, Sequence[Verdict]], passages: Sequence[Passage]) -> dict[str, object]:
    """The entry of one question in questions.jsonl."""
    record: dict[str, object] = {}
    for kind, verdicts in found.items():
        shown = [dict(each.fields) if each.fields else {"failure": each.failure} for each in verdicts]
        if kind == "passages" and shown:
            record[kind] = [{"id": each.id, **own} for each, own in zip(passages, shown, strict=True)]
        elif shown:
            record["answer"] = shown[0]
    return {"judge": record}


def _case(found: Mapping[Kind, Sequence[Verdict]], passages: Sequence[Passage]) -> list[QuestionCase]:
    """The entry of one question on the page."""
    rows = [("answer", *_told(each, "verdict")) for each in found.get("answers", ())]
    rows += [
        (f"passage {place}: {passage.title}", *_told(each, "relevant"))
        for place, (passage, each) in enumerate(zip(passages, found.get("passages", ()), strict=False), start=1)
    ]
    return [QuestionCase(TITLE, ("what", "verdict", "reason"), tuple(rows))] if rows else []


def _told(verdict: Verdict, field: str) -> tuple[str, str]:
    """A verdict in a word, and its reason."""
    if not verdict.fields:
        return "failed", verdict.failure
    value = verdict.fields[field]
    return _WORDS[value] if isinstance(value, bool) else str(value), str(verdict.fields.get("reason", ""))


def judge_record(judge: Judge, verdicts: Mapping[str, Sequence[Verdict]], means: object) -> dict[str, object]:
    """The judge and its verdicts, for report.json.

    Args:
        judge: The judge.
        verdicts: What was judged -> its verdicts.
        means: By row, or by system and row.
    """
    asked = {each.key: each for of_kind in verdicts.values() for each in of_kind}
    return {
        "model": judge.llm.name,
        "prompts": {kind: {"name": prompt.name, "hash": prompt.hash} for kind, prompt in judge.prompts.items()},
        "passages": judge.passages,
        "means": means,
        "verdicts": len(asked),
        "failures": dict(Counter(each.failure for each in asked.values() if each.failure)),
    }
