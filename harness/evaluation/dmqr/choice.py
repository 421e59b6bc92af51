"""The adaptive choice of strategies in DMQR-RAG's study (Section 3.2.4, Figures 2 and 3).

How many rewrites it saves, and what it changes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.dmqr.methods import ALL_STRATEGIES
from harness.evaluation.dmqr.rewrites import rewrites_of, strategies_of
from harness.evaluation.dmqr.search import Found
from harness.evaluation.dmqr.tables import Scored
from harness.evaluation.plots import axes_of, save
from harness.evaluation.tables import Cell, Cells, Table

CHOSEN, DIFFERENCE = "with choice", "difference"
_NOTE = """\
Per question, {fewer:.0f}% fewer rewrites are made with the choice, and {searches:.0f}% fewer different queries \
besides the question search. Rewrites: strategies that
are asked; one that falls back to the question is among them. The paper (FreshQA): 4 without the choice, with it 2.48 \
by Llama3-8B and 2.46 by GPT-4; accuracy gains
2.17 and 0.66 points.
"""


def choice_table(
    found: Mapping[str, Found], scored: Mapping[str, Scored], own: str, columns: Sequence[str], bootstrap: Bootstrap
) -> Table:
    """Rewrites and metrics with and without the choice, and their paired differences (Figure 3).

    Args:
        found: By row, with those of the system and of ALL_STRATEGIES.
        scored: By row.
        own: The system's row.
        columns: Names of the values, undefined ones included.
        bootstrap: For the intervals.
    """
    counts = {
        row: [float(np.mean([count(hits) for hits in found[row].hits])) for count in (strategies_of, rewrites_of)]
        for row in (own, ALL_STRATEGIES)
    }
    values = [scored[row].values for row in (own, ALL_STRATEGIES)]
    known = [name for name in columns if all(name in each and not np.isnan(each[name]).all() for each in values)]
    chosen, every = ([each[name] for name in known] for each in values)
    cells = known_percent_cells([*chosen, *every, *(a - b for a, b in zip(chosen, every, strict=True))], bootstrap)
    size = len(known)
    changes = [with_choice - without for with_choice, without in zip(*counts.values(), strict=True)]
    rows: dict[str, Cells] = {
        CHOSEN: [*map(Cell, counts[own]), *cells[:size]],
        ALL_STRATEGIES: [*map(Cell, counts[ALL_STRATEGIES]), *cells[size : 2 * size]],
        DIFFERENCE: [*map(Cell, changes), *cells[2 * size :]],
    }
    fewer, searches = (
        -100 * change / whole if whole else 0.0 for change, whole in zip(changes, counts[ALL_STRATEGIES], strict=True)
    )
    return Table(
        "choice", "With and without the choice of strategies (Figure 3)",
        ("rewrites", "different queries", *(f"{name} %" for name in known)), rows,
        note=_NOTE.format(fewer=fewer, searches=searches), signed=frozenset({DIFFERENCE}),
    )  # fmt: skip


def plot_choice(table: Table, path: Path) -> None:
    """Figure 3: bars of the metrics with and without the choice, with their intervals, from its table."""
    figure, (axes,) = axes_of()
    names = [name for name in table.columns if name.endswith(" %")]
    first = len(table.columns) - len(names)
    for place, row in enumerate((CHOSEN, ALL_STRATEGIES)):
        cells = [cell or Cell(np.nan) for cell in table.rows[row][first:]]
        errors = [
            [abs(cell.value - cell.interval[side]) if cell.interval else 0.0 for cell in cells] for side in (0, 1)
        ]
        label = f"{row}, {(table.rows[row][0] or Cell(np.nan)).value:.2f} rewrites"
        places = np.arange(len(names)) + 0.4 * place
        axes.bar(places, [cell.value for cell in cells], 0.4, yerr=errors, capsize=3, label=label)
    axes.set_xticks(np.arange(len(names)) + 0.2, [name.removesuffix(" %") for name in names])
    axes.set(ylabel="%", title=table.title)
    save(figure, [axes], path)
