"""MSRAG's Tables 1 to 3 and Figure 2, and the selections side by side.

Shape legend: R runs, N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import yes_or_no
from common.records import Answer, Question
from harness.evaluation.answer_scores import MEASURES, answer_values
from harness.evaluation.settings import Settings
from harness.evaluation.tables import Cell, Cells, ReportTable

GOLD = "uses the gold answer"
NOTES = """\
Acc: {accuracy}. Rows whose name says so choose by the GOLD answer, as in the paper (Eq. 1-4): an upper bound of every \
selection among the same
answers, no system. All rows share the sources' answers: a source is asked once. Differences are paired, in points. \
The paper's figures are with \
Llama-2-7B-Chat, GPT-3.5 and Google.
"""
RUNS = """\
Mean of {runs} runs, each with other samples: a question's score is its mean over the runs, and the intervals are over \
questions. The questions'
records and the further tables of answers are those of the first run.
"""
YES_NO = "the first word of the answer is the gold answer, with true for yes and false for no"
INCLUSION = "the normalized answer contains a normalized gold answer"


def scores_of(answers: Sequence[Answer], questions: Sequence[Question], settings: Settings) -> NDArray[np.float64]:
    """(3, N) EM, F1 and accuracy, 0 to 1; NaN for a question without a gold answer."""
    values = answer_values(questions, answers, settings)
    if is_yes_no(questions):
        right = [float(yes_or_no(answer.text) in q.answers) for answer, q in zip(answers, questions, strict=True)]
        values[2] = np.where(np.isnan(values[2]), np.nan, right)
    return values


def is_yes_no(questions: Sequence[Question]) -> bool:
    """Whether all gold answers are yes or no; False without any."""
    golds = {answer for question in questions for answer in question.answers}
    return bool(golds) and golds <= {"yes", "no"}


def runs_table(values: Mapping[str, NDArray[np.float64]]) -> ReportTable:
    """EM of every run, and mean and standard deviation over the runs of each measure, in per cent and points.

    Args:
        values: (R, 3, N) by row.
    """
    cells: dict[str, Cells] = {}
    for row, each in values.items():
        by_run_R3 = 100 * np.nanmean(each, axis=2)
        means, deviations = by_run_R3.mean(axis=0), by_run_R3.std(axis=0, ddof=1)
        spread = [Cell(float(value)) for pair in zip(means, deviations, strict=True) for value in pair]
        cells[row] = [*(Cell(float(value)) for value in by_run_R3[:, 0]), *spread]
    runs = len(next(iter(values.values())))
    names = [name.removesuffix(" %") for name in MEASURES]
    columns = (
        *(f"EM %, run {run + 1}" for run in range(runs)),
        *(each for name in names for each in (f"{name} %, mean", f"{name}, standard deviation")),
    )
    return ReportTable("runs", "Runs: mean and standard deviation over the samples", columns, cells)
