"""MSRAG's Tables 1 to 3 and Figure 2, and the selections side by side.

Shape legend: R runs, N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import yes_or_no
from common.records import Answer, Question
from harness.evaluation.answer_scores import Bootstrap, known_percent_cells, score_answers
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cell, Cells, Table

COLUMNS = ("EM %", "F1 %", "Acc %")
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
    known_N = np.array([bool(question.answers) for question in questions])
    values = np.full((3, len(questions)), np.nan)
    asked = [question for question in questions if question.answers]
    texts = [answer.text for answer, known in zip(answers, known_N, strict=True) if known]
    values[:, known_N] = score_answers(texts, asked, settings.normalization, settings.yes_no_rule).stacked()
    if is_yes_no(questions):
        values[2, known_N] = [float(yes_or_no(text) in q.answers) for text, q in zip(texts, asked, strict=True)]
    return values


def is_yes_no(questions: Sequence[Question]) -> bool:
    """Whether all gold answers are yes or no; False without any."""
    golds = {answer for question in questions for answer in question.answers}
    return bool(golds) and golds <= {"yes", "no"}


def majority_row(questions: Sequence[Question], settings: Settings) -> dict[str, Cells]:
    """What the most frequent answer reaches, where all answers are yes or no; else nothing."""
    if not is_yes_no(questions):
        return {}
    golds = [question.answers[0] for question in questions if question.answers]
    most = max(("no", "yes"), key=golds.count)
    constant = [Answer(question.id, most, ()) for question in questions]
    return {
        f"always {most!r} (majority)": known_percent_cells(scores_of(constant, questions, settings), settings.bootstrap)
    }


def scores_table(
    name: str,
    title: str,
    values: Mapping[str, NDArray[np.float64]],
    settings: Settings,
    paper: Mapping[str, Cells] | None = None,
    further: Mapping[str, Cells] | None = None,
) -> Table:
    """EM, F1 and accuracy of rows.

    Args:
        name: Of the table.
        title: Its heading.
        values: (3, N) by row.
        settings: Of the evaluation.
        paper: The paper's rows.
        further: Rows of our own that are no system.
    """
    rows = {row: known_percent_cells(each, settings.bootstrap) for row, each in values.items()}
    return Table(name, f"{title}, {settings.normalization}", COLUMNS, {**rows, **(further or {})}, dict(paper or {}))


def differences_table(
    row: str, values: Mapping[str, NDArray[np.float64]], to: Sequence[str], bootstrap: Bootstrap
) -> Table:
    """Paired differences of one row to others, in points."""
    cells = {f"{row} - {other}": known_percent_cells(values[row] - values[other], bootstrap) for other in to}
    columns = tuple(f"{name.removesuffix(' %')}, points" for name in COLUMNS)
    return Table(
        f"differences - {row}", f"Differences of {row} to single sources", columns, cells, signed=frozenset(cells)
    )


def runs_table(values: Mapping[str, NDArray[np.float64]]) -> Table:
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
    names = [name.removesuffix(" %") for name in COLUMNS]
    columns = (
        *(f"EM %, run {run + 1}" for run in range(runs)),
        *(each for name in names for each in (f"{name} %, mean", f"{name}, standard deviation")),
    )
    return Table("runs", "Runs: mean and standard deviation over the samples", columns, cells)
