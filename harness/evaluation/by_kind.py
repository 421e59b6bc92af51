"""Several systems by kind of question.

A measure with intervals, paired differences to the first system, and which system is best where.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.tables import Cell, Table

Values = NDArray[np.float64]  # (N,) of one measure, 0 to 1, NaN where it is undefined


def kind_tables(
    name: str, values: Mapping[str, Values], competing: Sequence[str], kinds_N: NDArray[np.str_], bootstrap: Bootstrap
) -> list[Table]:
    """One measure by kind of question, the most frequent kind first, with a sentence on each kind.

    Also the differences to the first system.

    Args:
        name: Of the measure.
        values: Of every row; the first row is the system to which the others are compared.
        competing: The rows among which the best is named: systems, not their variants.
        kinds_N: Kind of every question.
        bootstrap: For the intervals.
    """
    counted, counts = np.unique(kinds_N, return_counts=True)
    kinds = [str(counted[place]) for place in np.argsort(-counts, kind="stable")]
    known = {row: each_N for row, each_N in values.items() if not np.isnan(each_N).all()}
    first = next(iter(values))
    cells: dict[str, list[Cell | None]] = {"questions": [Cell(int((kinds_N == kind).sum())) for kind in kinds]}
    differences: dict[str, list[Cell | None]] = {row: [] for row in known if first in known and row != first}
    cells |= {row: [] for row in known}
    for kind in kinds:
        of_kind_N = kinds_N == kind
        found = known_percent_cells([each_N[of_kind_N] for each_N in known.values()], bootstrap)
        for row, cell in zip(known, found, strict=True):
            cells[row].append(cell)
        if differences:
            paired = [(known[row] - known[first])[of_kind_N] for row in differences]
            for row, cell in zip(differences, known_percent_cells(paired, bootstrap), strict=True):
                differences[row].append(cell)
    own = {row: known[row] for row in competing if row in known}
    best = [f"{kind}: {best_of({row: v[kinds_N == kind] for row, v in own.items()}, bootstrap)}" for kind in kinds]
    note = f"By {name}, intervals not corrected for the number of comparisons. " if len(own) > 1 else ""
    columns = tuple(kinds)
    tables = [
        Table(
            f"{name} by kind",
            f"{name} % by kind of question",
            columns,
            cells,
            note=note + " ".join(best) if note else "",
        )
    ]
    if differences:
        title = f"Differences to {first} by kind of question, {name}, points"
        tables.append(Table(f"{name} by kind, differences", title, columns, differences, signed=frozenset(differences)))
    return tables


def best_of(values: Mapping[str, Values], bootstrap: Bootstrap) -> str:
    """A sentence on which system is best: it wins if the interval of its difference to the next one excludes zero.

    Args:
        values: Of every system, on the same questions; the first is the one to which the others are compared.
        bootstrap: For the intervals.
    """
    means = {name: 100 * float(np.nanmean(each_N)) for name, each_N in values.items() if not np.isnan(each_N).all()}
    if len(means) < 2:
        return "not measured for two systems."
    best, second = sorted(means, key=lambda name: -means[name])[:2]
    first = next(iter(means))
    to_next = _difference(values[best], values[second], bootstrap)
    named = f"{best}, {means[best]:.1f}"
    behind = _shown(to_next, second)
    if _above_zero(to_next):
        return f"{named}, wins, {behind}."
    if best != first and second != first:
        to_first = _difference(values[best], values[first], bootstrap)
        if _above_zero(to_first):
            return f"no clear winner; {named}, is better, {_shown(to_first, first)}, but not clearly, {behind}."
    return f"no clear winner; the greatest is {named}, {behind}."


def _difference(ours_N: Values, theirs_N: Values, bootstrap: Bootstrap) -> Cell | None:
    return known_percent_cells([ours_N - theirs_N], bootstrap)[0]


def _above_zero(cell: Cell | None) -> bool:
    return cell is not None and cell.interval is not None and cell.interval[0] > 0


def _shown(cell: Cell | None, other: str) -> str:
    if cell is None or cell.interval is None:
        return f"without a question in common with {other}"
    low, high = cell.interval
    return f"{cell.value:+.1f} [{low:+.1f}, {high:+.1f}] to {other}"
