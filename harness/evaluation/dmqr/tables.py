"""DMQR-RAG's Tables 2 to 4: H@k, P@k, EM and F1 of every method, with paired differences.

Also recall.

Shape legend: N questions, R rows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.dmqr.methods import ALL_STRATEGIES, OQR, OQR_DEEP, RM3, Method
from harness.evaluation.dmqr.scores import Relevance
from harness.evaluation.dmqr.search import Found
from harness.evaluation.paper_figures import Paper, dmqr
from harness.evaluation.plots import axes_of, save
from harness.evaluation.tables import Cell, Cells, Table

COMPARED_TO = (OQR, OQR_DEEP, RM3, ALL_STRATEGIES)  # rows to which the others are compared
_RECALL_AT = re.compile(r"recall@(\d+)")
ALL = "recall of all"
JUDGED = "judged "  # beginning of a judge's values
NOTES = """\
H@{k}: a relevant passage is among the first {k}; P@{k}: relevant passages among the first {k}, divided by {k}. \
Relevant: {rule}. {recall} A
row of fewer than k passages has no more for recall@k. Recall of all: of all passages that the queries found, before \
any are cut off.
Differences are paired, in points.

Rows. OQR: the question alone, {per_query} passages. OQR deep: the question alone, {deep} passages. A strategy's name: \
the question and its
rewrite by that strategy. A row ending in "rrf": reciprocal rank fusion instead of the scorer. All rows search the \
same index at the same depth
per query, and have the same fusion unless their name says otherwise.{judged}
"""
BY_REWRITE = """
Passages are judged by the rewrite by {judged_by}; of OQR and RM3 by the question, unless their name says otherwise."""
RULES = {
    "gold passage": "a gold passage of the question's file",
    "has-answer": "the passage contains a gold answer (DPR's rule), as the file names no gold passages",
}
RECALL = {
    "gold passage": "Recall: share of a question's gold passages.",
    "has-answer": "Recall@k: a relevant passage is among the first k.",
}


@dataclass(slots=True)
class Scored:
    """A method's values per question, 0 to 1, NaN where they are undefined."""

    method: Method
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # name -> (N,)
    queries: float = 0.0  # mean number per question
    passages: float = 0.0  # mean number of different passages that they found


def score_methods(found: Mapping[str, Found], relevance: Relevance, k: int, ks: Sequence[int]) -> dict[str, Scored]:
    """H@k, P@k and recall of every method.

    Args:
        found: By method.
        relevance: The rule.
        k: Of H@k and P@k.
        ks: Of recall@k.
    """
    scored = {}
    for name, each in found.items():
        ranked = [hits.ranked for hits in each.hits]
        unions = [hits.union for hits in each.hits]
        row = Scored(each.method)
        row.values[f"H@{k}"], row.values[f"P@{k}"] = relevance.hits_and_precision(ranked, k)
        for n in ks:
            row.values[f"recall@{n}"] = relevance.recall(ranked, n)
        row.values[ALL] = relevance.recall_of(unions)
        row.queries = float(np.mean([len(hits.searches) for hits in each.hits]))
        row.passages = float(np.mean([*map(len, unions)]))
        scored[name] = row
    return scored


def method_tables(
    scored: Mapping[str, Scored], columns: Sequence[str], title: str, bootstrap: Bootstrap, paper: Paper | None = None
) -> list[Table]:
    """Tables 2 and 3, and the differences of their rows; Table 4 where strategies were left out.

    Args:
        scored: By method.
        columns: Names of the values.
        title: What the first one shows, with the rule.
        bootstrap: For the intervals.
        paper: Adds the paper's figures for this data set.
    """
    rows = {name: each for name, each in scored.items() if not each.method.without}
    tables = [_table("methods", f"Methods (Tables 2 and 3), {title}", rows, columns, bootstrap, dmqr(paper, (2, 3)))]
    tables += differences("methods", "Methods", rows, columns, bootstrap)
    without = {name: each for name, each in scored.items() if each.method.without}
    if without:
        whole = next(name for name, each in rows.items() if _is_whole(each.method, without))
        shown = {whole: rows[whole], **without}
        heading = f"Each strategy left out (Table 4), {title}"
        tables.append(_table("ablation", heading, shown, columns, bootstrap, dmqr(paper, (4,))))
        tables += differences("ablation", "Each strategy left out", shown, columns, bootstrap, (whole,))
    return tables


def _is_whole(method: Method, without: Mapping[str, Scored]) -> bool:
    """Whether a method is that from which strategies were left out."""
    one = next(iter(without.values())).method
    return not method.part and method.rewriter == one.rewriter and method.fusion == one.fusion


def recall_tables(scored: Mapping[str, Scored], ks: Sequence[int], rule: str, bootstrap: Bootstrap) -> list[Table]:
    """Recall@k of every method by its fusion, with differences.

    Without Table 4.
    """
    scored = {name: each for name, each in scored.items() if not each.method.without}
    reranked = any(each.method.fusion == "rerank" for each in scored.values())
    columns = [f"recall@{k}" for k in ks]
    by = "after reranking" if reranked else "by reciprocal rank fusion"
    tables = [_table("recall", f"Recall {by}, {rule}", scored, [*columns, ALL], bootstrap)]
    tables += differences("recall", "Recall", scored, columns, bootstrap)
    return tables


def differences(
    table: str,
    title: str,
    scored: Mapping[str, Scored],
    columns: Sequence[str],
    bootstrap: Bootstrap,
    to: Sequence[str] = COMPARED_TO,
) -> list[Table]:
    """Paired differences to rows, in points; one table for each of these rows that there is."""
    tables = []
    for baseline in (name for name in to if name in scored and len(scored) > 1):
        others = {name: each for name, each in scored.items() if name != baseline}
        own = scored[baseline].values
        known = [name for name in columns if name in own and not np.isnan(own[name]).all()]
        cells = _cells([[_value(each, name) - own[name] for name in known] for each in others.values()], bootstrap)
        rows: dict[str, Cells] = dict(zip(others, cells, strict=True))
        tables.append(
            Table(
                f"{table} - {baseline}", f"{title}: differences to {baseline}",
                tuple(f"{name}, points" for name in known), rows, signed=frozenset(rows),
            )
        )  # fmt: skip
    return tables


def _table(
    name: str,
    title: str,
    scored: Mapping[str, Scored],
    columns: Sequence[str],
    bootstrap: Bootstrap,
    paper: Mapping[str, Mapping[str, float]] | None = None,
) -> Table:
    """The means of every method, with its queries and passages per question; values that nobody has are left out.

    The paper's H@5, P@5 and accuracy are a judge's: they stand beside the judged ones of the rows where there are any.
    """
    known = [
        column
        for column in columns
        if any(not np.isnan(_value(each, column)).all() for each in scored.values())
        or any(_of_paper(column, columns) in row for row in (paper or {}).values())
    ]
    cells = _cells([[_value(each, column) for column in known] for each in scored.values()], bootstrap)
    rows: dict[str, Cells] = {
        row: [*own, Cell(each.queries), Cell(each.passages)]
        for (row, each), own in zip(scored.items(), cells, strict=True)
    }
    published: dict[str, Cells] = {
        row: [*(Cell(own[key]) if (key := _of_paper(each, columns)) in own else None for each in known), None, None]
        for row, own in (paper or {}).items()
    }
    shown = tuple(f"{column} %" for column in known)
    return Table(name, title, (*shown, "queries", "passages"), rows, published)


def _of_paper(column: str, columns: Sequence[str]) -> str:
    """The paper's name of what stands in a column; empty where the paper has nothing for it."""
    judged = column.removeprefix(JUDGED)
    if judged != column:
        return judged
    return "" if f"{JUDGED}{column}" in columns else column


def _value(scored: Scored, name: str) -> NDArray[np.float64]:
    """A method's values; NaN for one that was not measured."""
    some_N = next(iter(scored.values.values()))
    return scored.values.get(name, np.full_like(some_N, np.nan))


def _cells(values_RN: Sequence[Sequence[NDArray[np.float64]]], bootstrap: Bootstrap) -> list[list[Cell | None]]:
    """The mean of every array of every row, over its known values, with its interval."""
    flat = [values_N for row in values_RN for values_N in row]
    cells = iter(known_percent_cells(np.stack(flat), bootstrap) if flat else [])
    return [[next(cells) for _ in row] for row in values_RN]


def plot_recall(tables: Sequence[Table], path: Path) -> None:
    """Recall@k of every method, one panel per table."""
    figure, panels = axes_of(len(tables))
    for axes, table in zip(panels, tables, strict=True):
        places = {place: int(match[1]) for place, name in enumerate(table.columns) if (match := _RECALL_AT.match(name))}
        for number, (name, cells) in enumerate(table.rows.items()):
            values = [cell.value if (cell := cells[place]) else np.nan for place in places]
            style = "--" if name in COMPARED_TO else "-"
            axes.plot([*places.values()], values, marker="o", linestyle=style, color=f"C{number % 10}", label=name)
        axes.set(xlabel="k", ylabel="recall@k, %", title=table.title)
        axes.set_xticks([*places.values()])
    save(figure, panels, path)
