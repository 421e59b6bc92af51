"""RE-RAG's plots: EM by number of contexts, EM by share of relevant contexts."""

from pathlib import Path

import numpy as np

from harness.evaluation.plots import axes_of, save
from harness.evaluation.tables import Table


def plot_contexts(table: Table, path: Path) -> None:
    """Figure 2: EM by number of contexts, with intervals, from its table."""
    figure, (axes,) = axes_of()
    counts = [int(name) for name in table.rows]
    for column, name in enumerate(table.columns):
        cells = [cells[column] for cells in table.rows.values()]
        values = [cell.value if cell else float("nan") for cell in cells]
        ends = [cell.interval if cell and cell.interval else (float("nan"),) * 2 for cell in cells]
        (line,) = axes.plot(counts, values, marker="o", linestyle="--" if "fast" in name else "-", label=name)
        low, high = zip(*ends, strict=True)
        axes.fill_between(counts, low, high, color=line.get_color(), alpha=0.1)
    axes.set(xlabel="contexts", ylabel="EM, %", title=table.title)
    axes.set_xticks(counts)
    save(figure, [axes], path)


def plot_quality(table: Table, path: Path) -> None:
    """Figure 3: EM (lines) and number of questions (bars) by share of relevant contexts, from its table."""
    figure, (axes,) = axes_of()
    bars = axes.twinx()
    places = np.arange(len(table.rows))
    for number in range(len(table.columns) // 2):
        name = table.columns[2 * number + 1].removeprefix("EM %, ")
        counts, values = (
            [each.value if each else float("nan") for each in column] for column in _columns(table, number)
        )
        bars.bar(places + 0.35 * (number - 0.5), counts, width=0.35, alpha=0.25, color=f"C{number}")
        axes.plot(places, values, marker="o", color=f"C{number}", label=name)
    axes.set_xticks(places, list(table.rows), rotation=45, ha="right")
    axes.set(
        xlabel="share of relevant contexts",
        ylabel="EM, % (lines)",
        title="EM by share of relevant contexts",
        ylim=(0, 100),
    )
    bars.set_ylabel("questions (bars)")
    save(figure, [axes], path)


def _columns(table: Table, number: int) -> list[list]:
    return [[cells[2 * number + offset] for cells in table.rows.values()] for offset in (0, 1)]
