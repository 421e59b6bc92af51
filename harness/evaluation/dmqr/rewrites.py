"""How many rewrites the questions have (DMQR-RAG, Figure 2)."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from harness.evaluation.dmqr.search import Found
from harness.evaluation.plots import axes_of
from harness.evaluation.tables import Cell, Cells, Table
from harness.retrievers.multi_query import ORIGINAL, MultiQueryHits

_REWRITES_NOTE = """\
Strategies: mean number that is asked; they may fall back to the question or make the same query. Mean, and the shares \
of the questions: different
queries besides the question itself. Of the paper's four strategies, its adaptive selection takes
2.48 on average with Llama3-8B and 2.46 with GPT-4 (Figure 2, FreshQA).
"""


def rewrites_table(found: Mapping[str, Found]) -> Table:
    """How many different queries besides the question each method has (Figure 2).

    Args:
        found: Methods with all strategies of a rewriter, by name.
    """
    counts = {name: [*map(rewrites_of, each.hits)] for name, each in found.items()}
    most = max(max(own) for own in counts.values())
    rows: dict[str, Cells] = {}
    for name, own in counts.items():
        times = Counter(own)
        asked = Cell(float(np.mean([*map(strategies_of, found[name].hits)])))
        rows[name] = [
            asked,
            Cell(float(np.mean(own))),
            *(Cell(100 * times[number] / len(own)) for number in range(most + 1)),
        ]
    columns = ("strategies", "mean", *(f"{number} %" for number in range(most + 1)))
    return Table("rewrites", "Number of rewrites (Figure 2)", columns, rows, note=_REWRITES_NOTE)


def rewrites_of(hits: MultiQueryHits) -> int:
    """Number of different queries of a question besides the question itself."""
    return sum(ORIGINAL not in search.made_by for search in hits.searches)


def strategies_of(hits: MultiQueryHits) -> int:
    """Number of strategies by which a question was rewritten, fallbacks included."""
    return len(hits.rewrites.queries) if hits.rewrites else 0


def plot_rewrites(table: Table, path: Path) -> None:
    """Figure 2: bars of the number of rewrites, from its table."""
    figure, (axes,) = axes_of()
    numbers = np.arange(len(table.columns) - 2)
    width = 0.8 / len(table.rows)
    for place, (name, (_, mean, *cells)) in enumerate(table.rows.items()):
        label = f"{name}, mean {mean.value:.2f}" if mean else name
        axes.bar(numbers + width * place, [cell.value if cell else 0.0 for cell in cells], width, label=label)
    axes.set_xticks(numbers + 0.4 - width / 2, [str(number) for number in numbers])
    axes.set(xlabel="different queries besides the question", ylabel="questions, %", title=table.title)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
