"""Contexts of so many words.

What the rows' passages hold of the gold segments, and what readers answer (HiQA's Table 7 in shape).

Rows whose passages are of different length are compared fairly here: every row fills the same number of words.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import NORMALIZATIONS, exact_match
from common.records import Answer, Question, Ranked
from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.hiqa.accuracy import RIGHT_OR_WRONG, credits, exact_accuracy
from harness.evaluation.hiqa.ranking import HIT, RECALL, WHOLE, Row
from harness.evaluation.judging.tables import value_cells
from harness.evaluation.plots import axes_of, save
from harness.evaluation.reading import read_choices
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cells, Table, not_measured
from harness.interfaces import Reader

BUDGETS = (500, 1000, 1500, 3000)
TITLES = {RECALL: "Gold segments in a context of so many words, %", WHOLE: "Questions with all gold segments in it, %"}
_NOTE = (
    "The passages of the ranking, best first, each with its title, that fit so many words together: as the system "
    "fills its context, but without its limit on their number. The first passage always counts."
)
_ABSENT = "no readers are given (--study.readers)"


def columns_of(budgets: Sequence[int]) -> tuple[str, ...]:
    """The column of each budget."""
    return tuple(f"{budget:,} words" for budget in budgets)


def budget_tables(rows: Mapping[str, Row], budgets: Sequence[int], bootstrap: Bootstrap) -> list[Table]:
    """What the context of every row holds, and the paired differences of the first row to the others."""
    (own, first), *others = rows.items()
    tables = []
    for measure, title in TITLES.items():
        cells: dict[str, Cells] = {
            name: known_percent_cells([row.by_budget[budget][measure] for budget in budgets], bootstrap)
            for name, row in rows.items()
        }
        differences = {
            f"{own} - {name}": known_percent_cells(
                [first.by_budget[budget][measure] - row.by_budget[budget][measure] for budget in budgets], bootstrap
            )
            for name, row in others
        }
        name = f"budgets - {measure}"
        signed = frozenset(differences)
        tables.append(Table(name, title, columns_of(budgets), cells | differences, note=_NOTE, signed=signed))
    return tables


def draw_budgets(rows: Mapping[str, Row], budgets: Sequence[int], path: Path) -> None:
    """Curves of the rows over the words of the context."""
    figure, panels = axes_of(len(TITLES))
    for axes, (measure, title) in zip(panels, TITLES.items(), strict=True):
        for name, row in rows.items():
            means = [100 * np.mean(row.by_budget[budget][measure]) for budget in budgets]
            axes.plot(budgets, means, marker="o", label=name)
        axes.set(xlabel="words of the context", title=title)
    save(figure, panels, path)


def read_at_budgets(
    readers: dict[str, Reader],
    questions: Sequence[Question],
    contexts: Sequence[Sequence[Sequence[Ranked]]],
    folder: Path,
) -> tuple[dict[str, list[list[Answer]]], float]:
    """The answers of every reader by budget, and the seconds that an interrupted run had spent.

    A reader loads when its turn comes, and is freed before the next one.

    Args:
        readers: By name; taken out one after the other.
        questions: Those without gold answers are not read.
        contexts: Passages by budget and question.
        folder: For what was read, so that an interrupted evaluation goes on.
    """
    answers: dict[str, list[list[Answer]]] = {}
    seconds = 0.0
    for number, name in enumerate([*readers], 1):
        read = read_choices(readers.pop(name), questions, contexts, folder / f"budgets-{number}.jsonl")
        answers[name] = read.answers
        seconds += read.seconds_before
    return answers, seconds


def readers_table(
    answers: Mapping[str, Sequence[Sequence[Answer]]],
    own: Row,
    budgets: Sequence[int],
    questions: Sequence[Question],
    settings: Settings,
) -> Table:
    """Table 7: accuracy of every reader by words of the context, below what the context holds.

    Args:
        answers: Of `read_at_budgets`.
        own: The row whose contexts were read.
        budgets: Words.
        questions: The questions.
        settings: Normalization, bootstrap and judge.
    """
    title, columns = "Table 7: readers by words of the context, %", columns_of(budgets)
    rows: dict[str, Cells] = {
        name: known_percent_cells([own.by_budget[budget][measure] for budget in budgets], settings.bootstrap)
        for name, measure in (("a gold segment in the context", HIT), ("all gold segments in the context", WHOLE))
    }
    if not answers:
        rows["readers"] = [not_measured(_ABSENT)] * len(budgets)
    for name, by_budget in answers.items():
        of_budget = {str(budget): each for budget, each in zip(budgets, by_budget, strict=True)}
        measures = {"EM": [_exact(questions, each, settings) for each in by_budget]}
        measures["accuracy, exact match"] = [*exact_accuracy(of_budget, questions).values()]
        if settings.judge is not None and "answers" in settings.judge.prompts:
            judged = [credits(settings.judge, questions, each)[0] for each in by_budget]
            measures["accuracy, judged"] = judged
        for measure, values in measures.items():
            cells = value_cells(values, settings.bootstrap)
            absent = not_measured("no question of these kinds has a gold answer")
            rows[f"{name}: {measure}"] = [cell or absent for cell in cells]
    note = f"{_NOTE} Accuracy by exact match: of the kinds {', '.join(RIGHT_OR_WRONG)}."
    return Table("readers", title, columns, rows, note=note)


def _exact(questions: Sequence[Question], answers: Sequence[Answer], settings: Settings) -> NDArray[np.float64]:
    """100 or 0 by exact match, NaN without gold answers."""
    normalize = NORMALIZATIONS[settings.normalization]
    pairs = zip(questions, answers, strict=True)
    return np.array([
        100 * exact_match(answer.text, question.answers, normalize) * bool(answer.text) if question.answers else np.nan
        for question, answer in pairs
    ])  # fmt: skip
