"""Several systems by kind of question.

A measure with intervals, paired differences to the first system, and which system is best where.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells, row_cells
from harness.evaluation.tables import Cell, Cells, Table

Values = NDArray[np.float64]  # (N,) of one measure, 0 to 1, NaN where it is undefined


def kind_tables(
    name: str,
    values: Mapping[str, Values],
    competing: Sequence[str],
    kinds: Mapping[str, NDArray[np.bool_]],
    bootstrap: Bootstrap,
) -> list[Table]:
    """One measure by kind of question, with a sentence on each kind, and the differences to the first system.

    Args:
        name: Of the measure.
        values: Of every row; the first row is the system to which the others are compared.
        competing: The rows among which the best is named: systems, not their variants.
        kinds: Which questions are of each kind, (N,).
        bootstrap: For the intervals.
    """
    known = {row: each_N for row, each_N in values.items() if not np.isnan(each_N).all()}
    first = next(iter(values))
    counts: dict[str, Cells] = {"questions": [Cell(int(mask_N.sum())) for mask_N in kinds.values()]}
    own = {row: known[row] for row in competing if row in known}
    note = ""
    if len(own) > 1:
        of_kinds = {kind: {row: values_N[mask_N] for row, values_N in own.items()} for kind, mask_N in kinds.items()}
        best = " ".join(f"{kind}: {best_of(of_kind, bootstrap)}" for kind, of_kind in of_kinds.items())
        note = f"By {name}, intervals not corrected for the number of comparisons. {best}"
    cells = row_cells(_by_kind(known, kinds), bootstrap)
    tables = [Table(f"{name} by kind", f"{name} % by kind of question", (*kinds,), {**counts, **cells}, note=note)]
    others = {row: v - known[first] for row, v in known.items() if row != first} if first in known else {}
    if others:
        differences = row_cells(_by_kind(others, kinds), bootstrap)
        title = f"Differences to {first} by kind of question, {name}, points"
        signed = frozenset(differences)
        tables.append(Table(f"{name} by kind, differences", title, (*kinds,), differences, signed=signed))
    return tables


def _by_kind(rows: Mapping[str, Values], kinds: Mapping[str, NDArray[np.bool_]]) -> dict[str, list[Values]]:
    """The values of each row, undefined for all questions but those of each kind."""
    return {row: [np.where(mask_N, own_N, np.nan) for mask_N in kinds.values()] for row, own_N in rows.items()}


def best_of(values: Mapping[str, Values], bootstrap: Bootstrap) -> str:
    """A sentence on which system is best: it wins if the interval of its difference to the next one excludes zero.

    Args:
        values: Of every system, on the same questions.
        bootstrap: For the intervals.
    """
    means = {name: 100 * float(np.nanmean(each_N)) for name, each_N in values.items() if not np.isnan(each_N).all()}
    if len(means) < 2:
        return "not measured for two systems."
    best, second = sorted(means, key=lambda name: -means[name])[:2]
    named = f"{best}, {means[best]:.1f}"
    (cell,) = known_percent_cells([values[best] - values[second]], bootstrap)
    if cell is None or cell.interval is None:
        return f"no clear winner; the greatest is {named}, without a question in common with {second}."
    low, high = cell.interval
    behind = f"{cell.value:+.1f} [{low:+.1f}, {high:+.1f}] to {second}"
    return f"{named}, wins, {behind}." if low > 0 else f"no clear winner; the greatest is {named}, {behind}."
