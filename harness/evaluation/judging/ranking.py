"""Adequacy (HiQA, Appendix B.2): a judge ranks the answers of K systems to each question; rank r gives K + 1 - r.

Shape legend: K systems, N questions.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.records import Question
from harness.evaluation.engine import Measured, has_read
from harness.evaluation.judge import Judge, Verdict
from harness.evaluation.judged import Judged
from harness.evaluation.judging.agreement import COLUMNS
from harness.evaluation.judging.system import judge_record
from harness.evaluation.judging.tables import ADEQUACY, compared_tables, costs_table, not_judged
from harness.evaluation.page import Case
from harness.evaluation.study import Settings


def judge_several(judge: Judge | None, measured: Mapping[str, Measured], settings: Settings) -> Judged:
    """Rank the answers of several systems, and compare all that the judge found of them.

    Args:
        judge: Has judged every system; None if there is none.
        measured: System -> its results, on the same questions.
        settings: Of the evaluation.
    """
    judged = {name: each.judged for name, each in measured.items() if each.judged}
    if judge is None or not judged:
        return Judged([not_judged()])
    questions = next(iter(measured.values())).questions
    readers = {name: each for name, each in measured.items() if has_read(each.answers)}
    verdicts: list[Verdict | None] = []
    cases: list[list[Case]] = []
    if "ranking" in judge.prompts and len(readers) > 1:
        texts = [[each.answers[number].text for each in readers.values()] for number in range(len(questions))]
        adequacy_KN, verdicts = adequacy(judge, questions, texts)
        for name, values_N in zip(readers, adequacy_KN, strict=True):
            judged[name].values[ADEQUACY] = values_N
        cases = [_case([*readers], adequacy_KN[:, number], each) for number, each in enumerate(verdicts)]
    names = dict.fromkeys(name for each in judged.values() for name in each.verdicts)
    every = {name: [v for each in judged.values() for v in each.verdicts.get(name, ())] for name in names}
    if ranked := [each for each in verdicts if each]:
        every["order of answers"] = ranked
    whole = Judged([], judge.facts, verdicts=every, cases=cases)
    tables = {name: table for name, each in judged.items() for table in each.tables if table.columns == COLUMNS}
    rows = {f"{name}: {row}": cells for name, table in tables.items() for row, cells in table.rows.items()}
    agreement = replace(next(iter(tables.values())), rows=rows)
    whole.tables = [*compared_tables(judged, settings.bootstrap), agreement, costs_table(every)]
    means = {name: judge_record(judge, each)["means"] for name, each in judged.items()}
    whole.record = judge_record(judge, whole) | {"means": means}
    return whole


def adequacy(
    judge: Judge, questions: Sequence[Question], texts: Sequence[Sequence[str]]
) -> tuple[NDArray[np.float64], list[Verdict | None]]:
    """(K, N) adequacy, 1 to K, NaN where the verdict failed; and the verdicts, None where there was nothing to rank.

    The judge sees each question's answers in an order that is drawn by the question's id, so that no system gains by
    its place. Equal answers are shown once and share the mean of their ranks.

    Args:
        judge: Judges.
        questions: The questions.
        texts: For each question the answers of the K systems.
    """
    count = len(texts[0])
    adequacy_KN = np.full((count, len(questions)), np.nan)
    verdicts: list[Verdict | None] = [None] * len(questions)
    shown = [_shuffled(question, [*dict.fromkeys(given)]) for question, given in zip(questions, texts, strict=True)]
    for size in range(2, count + 1):
        numbers = [number for number, each in enumerate(shown) if len(each) == size]
        found = judge.on_order([(questions[number], shown[number]) for number in numbers], size)
        for number, verdict in zip(numbers, found, strict=True):
            verdicts[number] = verdict
    for number, (order, ranked, given) in enumerate(zip(shown, verdicts, texts, strict=True)):
        if ranked is None:  # all answers are equal
            adequacy_KN[:, number] = (count + 1) / 2
        elif ranked.fields:
            adequacy_KN[:, number] = inverted_ranks(given, [order[place - 1] for place in ranked.fields["ranking"]])
    return adequacy_KN, verdicts


def _shuffled(question: Question, texts: list[str]) -> list[str]:
    drawn = random.Random(hashlib.sha256(question.id.encode()).digest())
    return drawn.sample(sorted(texts), len(texts))


def inverted_ranks(texts: Sequence[str], best_first: Sequence[str]) -> list[float]:
    """K + 1 - rank for each text; equal texts share the mean of the ranks that they take."""
    values: dict[str, float] = {}
    before = 0
    for text in best_first:
        same = sum(each == text for each in texts)
        values[text] = len(texts) + 1 - (before + (1 + same) / 2)
        before += same
    return [values[text] for text in texts]


def _case(names: Sequence[str], adequacy_K: NDArray[np.float64], verdict: Verdict | None) -> list[Case]:
    if verdict is not None and not verdict.fields:
        return [Case("Order of the answers, judged", ("failed",), ((verdict.failure,),))]
    order = np.argsort(-adequacy_K, kind="stable")
    rows = tuple((names[place], f"{adequacy_K[place]:g}") for place in order)
    note = str(verdict.fields.get("reason", "")) if verdict and verdict.fields else "All answers are equal."
    return [Case("Order of the answers, judged", ("system", "adequacy"), rows, note)]
