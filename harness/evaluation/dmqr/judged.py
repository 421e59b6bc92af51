"""A judge's verdicts on what every method of DMQR-RAG's study found and answered (Section 3.1.2).

Equal requests are asked once.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from common.records import Answer, Question
from harness.evaluation.dmqr.search import Found
from harness.evaluation.dmqr.tables import JUDGED, Scored
from harness.evaluation.judge import Judge, Verdict
from harness.evaluation.judging.system import credit_by, hit_and_precision, relevant_by
from harness.evaluation.judging.tables import costs_table
from harness.evaluation.tables import Table

ACCURACY = f"{JUDGED}Acc"


def judged_columns(k: int) -> tuple[str, str, str]:
    """The names of the values that a judge adds."""
    return f"{JUDGED}H@{k}", f"{JUDGED}P@{k}", ACCURACY


def judge_methods(
    judge: Judge,
    questions: Sequence[Question],
    found: Mapping[str, Found],
    scored: Mapping[str, Scored],
    texts: Mapping[str, Sequence[Answer]],
) -> Table | None:
    """Add judged H@k, P@k and accuracy to the values of every method, as far as the judge is asked for them.

    Args:
        judge: Its `verdicts` say what it is asked.
        questions: All of them.
        found: Their passages, by method.
        scored: Gets the values, NaN where a verdict failed or there is nothing to judge.
        texts: Answers of the methods that the reader has read.

    Returns:
        What it cost; None if it was not asked.
    """
    hit, precision, accuracy = judged_columns(judge.passages)
    asked: dict[str, list[Verdict]] = {}
    for name, each in found.items():
        values = scored[name].values
        if "passages" in judge.prompts:
            firsts = [[ranked.passage for ranked in hits.ranked[: judge.passages]] for hits in each.hits]
            verdicts = judge.on_passages([(q, p) for q, own in zip(questions, firsts, strict=True) for p in own])
            rest = iter(verdicts)
            judged_N2 = [hit_and_precision([relevant_by(next(rest)) for _ in own], judge.passages) for own in firsts]
            values[hit], values[precision] = np.array(judged_N2, dtype=np.float64).T
            asked.setdefault("passages", []).extend(verdicts)
        if "answers" in judge.prompts and name in texts:
            cases = [(n, q, a.text) for n, (q, a) in enumerate(zip(questions, texts[name], strict=True)) if q.answers]
            verdicts = judge.on_answers([(question, text) for _, question, text in cases if text])
            rest = iter(verdicts)
            values[accuracy] = np.full(len(questions), np.nan)
            for number, _, text in cases:  # an empty answer is wrong
                credit = credit_by(next(rest)) if text else 0.0
                values[accuracy][number] = np.nan if np.isnan(credit) else credit == 1
            asked.setdefault("answers", []).extend(verdicts)
    if not asked:
        return None
    table = costs_table(asked)
    table.name, table.title = "judge costs of the methods", "Costs of judging all methods"
    return table
