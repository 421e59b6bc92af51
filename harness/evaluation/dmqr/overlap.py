"""What the queries of a question find together and alone, and how many rewrites there are (DMQR-RAG, Figures 1, 2).

Shape legend: N questions, S makers of queries (the question itself, and the strategies).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.records import Passage
from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.dmqr.scores import Relevance
from harness.evaluation.dmqr.search import Found
from harness.evaluation.plots import axes_of
from harness.evaluation.tables import Cell, Cells, Table
from harness.retrievers.multi_query import ORIGINAL, MultiQueryHits

_NOTE = """\
Row i, column j: the share of the passages that query i found which query j found, too; mean over the questions that \
have both. A strategy
that fell back to the question shares all of it. Alone: the share that no other query found. Without it: how much \
recall of all is lost if
only this query is left out.
"""
_REWRITES_NOTE = """\
Strategies: mean number that is asked; they may fall back to the question or make the same query. Mean, and the shares \
of the questions: different
queries besides the question itself. Of the paper's four strategies, its adaptive selection takes
2.48 on average with Llama3-8B and 2.46 with GPT-4 (Figure 2, FreshQA).
"""


def overlap_table(found: Found, relevance: Relevance, bootstrap: Bootstrap) -> Table:
    """How much of what each query finds the others find, what it finds alone, and how much recall hangs on it.

    Args:
        found: Of a method with rewrites.
        relevance: The rule.
        bootstrap: For the intervals.
    """
    method = found.method
    makers = [*[ORIGINAL] * method.original, *method.strategies]
    lists = [_found_by(hits) for hits in found.hits]
    shared_SSN, alone_SN = shares(lists, makers)
    everything = [[*_united(own.values()).values()] for own in lists]
    all_N = relevance.recall_of(everything)
    has_SN = np.array([[maker in own for own in lists] for maker in makers])
    values = []
    for row, maker in enumerate(makers):
        without = [[*_united(found for name, found in own.items() if name != maker).values()] for own in lists]
        recall_N = relevance.recall_of([[*own.get(maker, {}).values()] for own in lists])
        values += [np.where(has_SN[row], each, np.nan) for each in (recall_N, all_N - relevance.recall_of(without))]
    cells = iter(known_percent_cells(np.stack(values), bootstrap))
    rows: dict[str, Cells] = {}
    for row, maker in enumerate(makers):
        fallen = sum(maker in hits.rewrites.fallbacks for hits in found.hits if hits.rewrites)
        rows[maker] = [
            *(_percent(shared_N) for shared_N in shared_SSN[row]), _percent(alone_SN[row]), next(cells), next(cells),
            Cell(100 * float(has_SN[row].mean())), Cell(100 * fallen / len(lists)),
        ]  # fmt: skip
    columns = (
        *(f"shared with {maker} %" for maker in makers), "alone %", "recall of it alone %",
        "recall lost without it, points", "questions %", "fell back %",
    )  # fmt: skip
    return Table("overlap", f"What each query finds, relevance by {relevance.rule}", columns, rows, note=_NOTE)


def _percent(values_N: NDArray[np.float64]) -> Cell | None:
    """The mean of the known values; None without any."""
    return None if np.isnan(values_N).all() else Cell(100 * float(np.nanmean(values_N)))


def shares(
    lists: Sequence[Mapping[str, Mapping[str, object]]], makers: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the passages that each maker's queries found, the share that each other one's found, too.

    Also the share that no other one's found.

    Args:
        lists: Per question: maker -> passages by id.
        makers: In the order of the rows and columns.

    Returns:
        (S, S, N) and (S, N), NaN where a maker has no query or found nothing.
    """
    shared_SSN = np.full((len(makers), len(makers), len(lists)), np.nan)
    alone_SN = np.full((len(makers), len(lists)), np.nan)
    for number, own in enumerate(lists):
        for row, maker in enumerate(makers):
            ids = own.get(maker, {}).keys()
            if not ids:
                continue
            for column, other in enumerate(makers):
                if other in own:
                    shared_SSN[row, column, number] = len(ids & own[other].keys()) / len(ids)
            elsewhere = {id_ for name, passages in own.items() if name != maker for id_ in passages}
            alone_SN[row, number] = len(ids - elsewhere) / len(ids)
    return shared_SSN, alone_SN


def _found_by(hits: MultiQueryHits) -> dict[str, dict[str, Passage]]:
    """What the queries of each maker found, by id."""
    found: dict[str, dict[str, Passage]] = {}
    for search in hits.searches:
        for maker in search.made_by:
            found.setdefault(maker, {}).update((hit.passage.id, hit.passage) for hit in search.hits)
    return found


def _united(lists: Iterable[Mapping[str, Passage]]) -> dict[str, Passage]:
    return {id_: passage for passages in lists for id_, passage in passages.items()}


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


def plot_overlap(table: Table, path: Path) -> None:
    """The shared passages as a matrix, from its table."""
    names = list(table.rows)
    values = np.array(
        [[cell.value if cell else np.nan for cell in cells[: len(names)]] for cells in table.rows.values()]
    )
    figure, (axes,) = axes_of()
    axes.imshow(values, vmin=0, vmax=100, cmap="Blues")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color="white" if value > 60 else "black")
    axes.set(xlabel="found by this query, too", ylabel="of the passages of this query", title="Shared passages, %")
    figure.savefig(path, dpi=120)


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
