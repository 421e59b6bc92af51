"""MSRAG's Tables 1 to 3 and Figure 2, the selections side by side, and how often each source was chosen and right.

Shape legend: R runs, N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import yes_or_no
from common.records import Answer, Question
from harness.evaluation.answer_scores import Bootstrap, known_percent_cells, percent_cells, score_answers
from harness.evaluation.msrag.rows import Row
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cell, Cells, Table

COLUMNS = ("EM %", "F1 %", "Acc %")
COSTS = (
    "retriever_calls",
    "model_calls",
    "rewriter_calls",
    "context_calls",
    "summary_calls",
    "tokens",
    "reply_tokens",
    "failed_calls",
)
GOLD = "uses the gold answer"
NOTES = """\
Acc: {accuracy}. Rows whose name says so choose by the GOLD answer, as in the paper (Eq. 1-4): an upper bound of every \
selection among the same
answers, no system. All rows share the sources' answers: a source is asked once. Differences are paired, in points. \
Costs: as if a row ran
alone; seconds are summed over the stages, which run one after the other here. The paper's figures are with \
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


def kinds_table(
    questions: Sequence[Question], values: Mapping[str, NDArray[np.float64]], measure: int, bootstrap: Bootstrap
) -> list[Table]:
    """One score of every row by kind of question, such as the share of a question of the generated world.

    None for a single kind.

    Args:
        questions: The questions.
        values: (3, N) by row.
        measure: Which of the three.
        bootstrap: For the intervals.
    """
    kinds_N = np.array([question.kind or "-" for question in questions])
    kinds, counts = np.unique(kinds_N, return_counts=True)
    if len(kinds) < 2:
        return []
    cells: dict[str, Cells] = {
        row: [known_percent_cells(each[measure][None, kinds_N == kind], bootstrap)[0] for kind in kinds]
        for row, each in values.items()
    }
    columns = tuple(f"{kind} ({count})" for kind, count in zip(kinds, counts, strict=True))
    return [Table("kinds", f"{COLUMNS[measure]} by kind of question (number)", columns, cells)]


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


def sources_table(
    answers: Sequence[Sequence[Mapping[str, Answer]]],
    rows: Sequence[Row],
    right: Mapping[str, NDArray[np.float64]],
    bootstrap: Bootstrap,
) -> Table:
    """How often each source answered, was lost, was right, was right alone, was chosen, and was right when chosen.

    Args:
        answers: By source, of every question, of every run.
        rows: The system's choices in every run.
        right: By source, whether its answer is right, (R, N) 0 or 1, NaN without a gold answer.
        bootstrap: For the intervals.
    """
    cells: dict[str, Cells] = {}
    for source, right_RN in right.items():
        others = [values_RN for name, values_RN in right.items() if name != source]
        by_run = []
        for run, (found, row) in enumerate(zip(answers, rows, strict=True)):
            assert row.chosen is not None
            alone_N = right_RN[run] * np.prod([1 - each[run] for each in others], axis=0) if others else right_RN[run]
            own = [each[source] for each in found]
            answered_N = np.array([float(bool(answer.text)) for answer in own])
            lost_N = np.array([float(bool(a.notes.get("lost") or a.notes.get("error"))) for a in own])
            chosen_N = np.array([float(choice.source == source) for choice in row.chosen])
            right_chosen_N = np.where(chosen_N == 1, right_RN[run], np.nan)
            by_run.append(np.stack([answered_N, lost_N, right_RN[run], alone_N, chosen_N, right_chosen_N]))
        cells[source] = known_percent_cells(_mean_of_known(np.stack(by_run)), bootstrap)
    any_N = np.max([*right.values()], axis=0).mean(axis=0)
    cells["any source"] = [None, None, *percent_cells(any_N[~np.isnan(any_N)][None], bootstrap), None, None, None]
    columns = ("answered %", "lost %", "right %", "right alone %", "chosen %", "right when chosen %")
    return Table("sources", "Sources: how often each was right and chosen (right: EM)", columns, cells)


def costs_table(by_run: Sequence[Mapping[str, Row]]) -> Table:
    """Mean calls, tokens and seconds of every row per question, over all runs."""
    rows = {name: [answer for each in by_run for answer in each[name].answers] for name in by_run[0]}
    found = [name for name in COSTS if any(name in answer.costs for answers in rows.values() for answer in answers)]
    cells: dict[str, Cells] = {}
    for name, answers in rows.items():
        means = [Cell(float(np.mean([answer.costs.get(cost, 0.0) for answer in answers]))) for cost in found]
        seconds = [sum(n for cost, n in answer.costs.items() if cost.startswith("seconds/")) for answer in answers]
        cells[name] = [*means, Cell(float(np.mean(seconds)))]
    columns = (*(name.replace("_", " ") for name in found), "seconds")
    return Table("costs of the rows", "Costs of the rows per question", columns, cells)


def _mean_of_known(values_RCN: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over the runs whose value is known, (C, N); NaN where none is."""
    known_RCN = ~np.isnan(values_RCN)
    counts_CN = known_RCN.sum(axis=0)
    sums_CN = np.where(known_RCN, values_RCN, 0.0).sum(axis=0)
    return np.where(counts_CN > 0, sums_CN / np.maximum(counts_CN, 1), np.nan)
