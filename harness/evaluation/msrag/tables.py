"""MSRAG's Tables 1 to 3 and its Figure 2, the selections beside each other, and how often each source was chosen and right.

Shape legend: N questions.
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
Acc: {accuracy}. Rows whose name says so choose by the GOLD answer, as in the paper (Eq. 1-4): an upper bound of every selection among the same
answers, no system. All rows share the sources' answers: a source is asked once. Differences are paired, in points. Costs: as if a row ran
alone; seconds are summed over the stages, which run one after the other here. The paper's figures are with Llama-2-7B-Chat, GPT-3.5 and Google.
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
    """Whether all gold answers are yes or no."""
    return {answer for question in questions for answer in question.answers} <= {"yes", "no"}


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


def sources_table(
    answers: Sequence[Mapping[str, Answer]], row: Row, right: Mapping[str, NDArray[np.float64]], bootstrap: Bootstrap
) -> Table:
    """How often each source answered, was lost, was right, was right alone, was chosen, and was right when it was chosen.

    Args:
        answers: By source, of every question.
        row: The system's choices.
        right: By source, whether its answer is right, (N,) 0 or 1, NaN without a gold answer.
        bootstrap: For the intervals.
    """
    assert row.chosen is not None
    cells: dict[str, Cells] = {}
    for source in right:
        others = [values_N for name, values_N in right.items() if name != source]
        alone_N = right[source] * np.prod([1 - each for each in others], axis=0) if others else right[source]
        answered_N = np.array([float(bool(each[source].text)) for each in answers])
        lost_N = np.array(
            [float(bool(each[source].notes.get("lost") or each[source].notes.get("error"))) for each in answers]
        )
        chosen_N = np.array([float(choice.source == source) for choice in row.chosen])
        right_chosen_N = np.where(chosen_N == 1, right[source], np.nan)
        values = np.stack([answered_N, lost_N, right[source], alone_N, chosen_N, right_chosen_N])
        cells[source] = known_percent_cells(values, bootstrap)
    any_N = np.max([*right.values()], axis=0)
    cells["any source"] = [None, None, *percent_cells(any_N[~np.isnan(any_N)][None], bootstrap), None, None, None]
    columns = ("answered %", "lost %", "right %", "right alone %", "chosen %", "right when chosen %")
    return Table("sources", "Sources: how often each was right and chosen (right: EM)", columns, cells)


def costs_table(rows: Mapping[str, Row]) -> Table:
    """Mean calls, tokens and seconds of every row per question."""
    found = [name for name in COSTS if any(name in answer.costs for row in rows.values() for answer in row.answers)]
    cells: dict[str, Cells] = {}
    for name, row in rows.items():
        means = [Cell(float(np.mean([answer.costs.get(cost, 0.0) for answer in row.answers]))) for cost in found]
        seconds = [sum(n for cost, n in answer.costs.items() if cost.startswith("seconds/")) for answer in row.answers]
        cells[name] = [*means, Cell(float(np.mean(seconds)))]
    columns = (*(name.replace("_", " ") for name in found), "seconds")
    return Table("costs of the rows", "Costs of the rows per question", columns, cells)
