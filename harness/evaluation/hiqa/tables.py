"""Tables of HiQA's study.

Rankings of the rows and their differences (Table 2), by number of documents (Figure 2), in contexts of so many words.

Rows whose passages are of different length are compared fairly in contexts of equal length alone: every row fills the
same number of words.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, differences_table, row_cells
from harness.evaluation.hiqa.ranking import RECALL, WHOLE, Scores
from harness.evaluation.tables import ReportTable

LOG_RANK = "Log-Rank"
TITLES = {RECALL: "Gold segments in a context of so many words, %", WHOLE: "Questions with all gold segments in it, %"}
_BUDGETS = (
    "The passages of the ranking, best first, each with its title, that fit so many words together: as the system "
    "fills its context, but without its limit on their number. The first passage always counts."
)
BySize = Mapping[str, Mapping[int, Scores]]  # row -> number of documents, or words of the context -> its scores


def ranking_tables(
    rows: Mapping[str, Scores], k: int, gamma: float, segments: int, bootstrap: Bootstrap
) -> list[ReportTable]:
    """Hit rate, recall, MRR and Log-Rank Index of every row, in per cent (Table 2), and differences of the first row.

    Args:
        rows: The scores of each row.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        segments: Of the first row's index.
        bootstrap: For the intervals.
    """
    measures = (f"hit@{k}", f"recall@{k}", "MRR", LOG_RANK)
    values = {name: [each[measure] for measure in measures] for name, each in rows.items()}
    note = (
        f"Rankings of all segments of the row's index ({segments:,} in the first row's), Log-Rank Index with gamma "
        f"{gamma:g}. A gold segment is found at the first one that holds its evidence; what no segment holds whole "
        "counts as last."
    )
    cells, columns = row_cells(values, bootstrap), tuple(f"{measure} %" for measure in measures)
    tables = [ReportTable("ranking", "Table 2: augmentation and routes", columns, cells, note=note)]
    if len(rows) > 1:
        own, points = next(iter(rows)), [f"{measure}, points" for measure in measures]
        title = f"Differences of {own} to the others"
        tables.append(differences_table("differences", title, points, values, own, bootstrap, of_it=True))
    return tables


def degradation_tables(rows: BySize, sizes: Sequence[int], k: int, bootstrap: Bootstrap) -> list[ReportTable]:
    """Hit rate and Log-Rank Index of every row by number of documents (Figure 2 in shape)."""
    columns = tuple(f"{size} documents" for size in sizes)
    return [
        ReportTable(
            f"documents - {measure}", f"Figure 2: {measure} % as documents are added", columns,
            row_cells(_values(rows, measure, sizes), bootstrap),
        )
        for measure in (f"hit@{k}", LOG_RANK)
    ]  # fmt: skip


def budget_tables(rows: BySize, budgets: Sequence[int], bootstrap: Bootstrap) -> list[ReportTable]:
    """The content of every row's context, and the paired differences of the first row to the others."""
    tables = []
    for measure, title in TITLES.items():
        values = _values(rows, measure, budgets)
        name, columns = f"budgets - {measure}", columns_of(budgets)
        table = differences_table(name, title, columns, values, next(iter(rows)), bootstrap, of_it=True)
        table.rows, table.note = row_cells(values, bootstrap) | dict(table.rows), _BUDGETS
        tables.append(table)
    return tables


def columns_of(budgets: Sequence[int]) -> tuple[str, ...]:
    """The column of each budget."""
    return tuple(f"{budget:,} words" for budget in budgets)


def _values(rows: BySize, measure: str, sizes: Sequence[int]) -> dict[str, list[NDArray[np.float64]]]:
    return {name: [by_size[size][measure] for size in sizes] for name, by_size in rows.items()}
