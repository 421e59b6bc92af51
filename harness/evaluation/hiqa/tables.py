"""Tables and the plot of HiQA's study.

Rankings of the rows, their differences, by number of documents.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.hiqa.ranking import Scores
from harness.evaluation.plots import axes_of, save
from harness.evaluation.tables import Cells, Table

LOG_RANK = "Log-Rank"


def measures(k: int) -> tuple[str, ...]:
    """Names of the scores that the tables show."""
    return f"hit@{k}", f"recall@{k}", "MRR", LOG_RANK


def ranking_table(rows: Mapping[str, Scores], k: int, gamma: float, count: int, bootstrap: Bootstrap) -> Table:
    """Hit rate, recall, MRR and Log-Rank Index of every row, in per cent (Table 2 in shape)."""
    cells = {name: known_percent_cells([each[m] for m in measures(k)], bootstrap) for name, each in rows.items()}
    note = (
        f"Rankings of all segments of the row's index ({count:,} in the first row's), Log-Rank Index with gamma "
        f"{gamma:g}. A gold segment is found at the first one that holds its evidence; what no segment holds whole "
        "counts as last."
    )
    return Table("ranking", "Table 2: augmentation and routes", tuple(f"{m} %" for m in measures(k)), cells, note=note)


def differences_table(rows: Mapping[str, Scores], k: int, bootstrap: Bootstrap) -> Table:
    """Paired differences of the first row to every other, in points."""
    (own, ours), *others = rows.items()
    cells: dict[str, Cells] = {
        f"{own} - {name}": known_percent_cells([ours[m] - each[m] for m in measures(k)], bootstrap)
        for name, each in others
    }
    columns = tuple(f"{m}, points" for m in measures(k))
    return Table("differences", f"Differences of {own} to the others", columns, cells, signed=frozenset(cells))


def degradation_tables(
    rows: Mapping[str, Mapping[int, Scores]], sizes: Sequence[int], k: int, bootstrap: Bootstrap
) -> list[Table]:
    """Hit rate and Log-Rank Index of every row by number of documents (Figure 2 in shape)."""
    tables = []
    for measure in (f"hit@{k}", LOG_RANK):
        cells: dict[str, Cells] = {
            name: known_percent_cells([by_size[size][measure] for size in sizes], bootstrap)
            for name, by_size in rows.items()
        }
        columns = tuple(f"{size} documents" for size in sizes)
        tables.append(Table(f"documents - {measure}", f"Figure 2: {measure} % as documents are added", columns, cells))
    return tables


def draw_degradation(rows: Mapping[str, Mapping[int, Scores]], sizes: Sequence[int], measure: str, path: Path) -> None:
    """Curves of the rows over the number of documents."""
    figure, panels = axes_of()
    for name, by_size in rows.items():
        panels[0].plot(sizes, [100 * np.nanmean(by_size[size][measure]) for size in sizes], marker="o", label=name)
    panels[0].set(xlabel="documents", ylabel=f"{measure} %", title="Degradation as look-alike documents are added")
    save(figure, panels, path)
