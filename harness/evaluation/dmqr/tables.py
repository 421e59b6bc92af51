"""DMQR-RAG's Tables 2 to 4: H@k, P@k, EM and F1 of every method, with paired differences; and recall before and after reranking.

Shape legend: N questions, R rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, known_percent_cells
from harness.evaluation.dmqr.methods import OQR, OQR_DEEP, RM3, Method
from harness.evaluation.dmqr.scores import Relevance
from harness.evaluation.dmqr.search import Found
from harness.evaluation.tables import Cell, Cells, Table

COMPARED_TO = (OQR, OQR_DEEP, RM3)  # rows to which the others are compared
_BEFORE = ", before"  # ending of a value that is measured before reranking
ALL = "recall of all"
NOTES = """\
H@{k}: a relevant passage is among the first {k}; P@{k}: relevant passages among the first {k}, divided by {k}. Relevant: {rule}. {recall} A
row of fewer than k passages has no more for recall@k. Recall of all: of all passages that the queries found, before any are cut off.
Differences are paired, in points.

Rows. OQR: the question alone, {per_query} passages. OQR deep: the question alone, {deep} passages. A strategy's name: the question and its
rewrite by that strategy. A row ending in "rrf": reciprocal rank fusion instead of the scorer. All rows search the same index at the same depth
per query, and have the same fusion unless their name says otherwise.
"""
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
            row.values[f"recall@{n}{_BEFORE}"] = relevance.recall(each.fused, n)
        row.values[ALL] = relevance.recall_of(unions)
        row.queries = float(np.mean([len(hits.searches) for hits in each.hits]))
        row.passages = float(np.mean([*map(len, unions)]))
        scored[name] = row
    return scored


def method_tables(
    scored: Mapping[str, Scored], columns: Sequence[str], title: str, bootstrap: Bootstrap
) -> list[Table]:
    """Tables 2 and 3, and the differences of their rows; Table 4 where strategies were left out.

    Args:
        scored: By method.
        columns: Names of the values.
        title: What the first one shows, with the rule.
        bootstrap: For the intervals.
    """
    rows = {name: each for name, each in scored.items() if not each.method.without}
    tables = [_table("methods", f"Methods (Tables 2 and 3), {title}", rows, columns, bootstrap)]
    tables += differences("methods", "Methods", rows, columns, bootstrap)
    without = {name: each for name, each in scored.items() if each.method.without}
    if without:
        whole = next(name for name, each in rows.items() if _is_whole(each.method, without))
        shown = {whole: rows[whole], **without}
        tables.append(_table("ablation", f"Each strategy left out (Table 4), {title}", shown, columns, bootstrap))
        tables += differences("ablation", "Each strategy left out", shown, columns, bootstrap, (whole,))
    return tables


def _is_whole(method: Method, without: Mapping[str, Scored]) -> bool:
    """Whether a method is that from which strategies were left out."""
    one = next(iter(without.values())).method
    return (
        method.rewriter == one.rewriter and method.fusion == one.fusion and len(method.strategies) > len(one.strategies)
    )


def recall_tables(scored: Mapping[str, Scored], ks: Sequence[int], rule: str, bootstrap: Bootstrap) -> list[Table]:
    """Recall@k of every method by its fusion, and before reranking where a method reranks, with differences; without Table 4."""
    scored = {name: each for name, each in scored.items() if not each.method.without}
    reranked = any(each.method.fusion == "rerank" for each in scored.values())
    columns = [f"recall@{k}" for k in ks]
    by = "after reranking" if reranked else "by reciprocal rank fusion"
    tables = [_table("recall", f"Recall {by}, {rule}", scored, [*columns, ALL], bootstrap)]
    tables += differences("recall", "Recall", scored, columns, bootstrap)
    if reranked:
        before = [f"{name}{_BEFORE}" for name in columns]
        kept = {name: each for name, each in scored.items() if not name.endswith(", rrf")}
        title = f"Recall before reranking, by reciprocal rank fusion, {rule}"
        tables.append(_table("recall before reranking", title, kept, before, bootstrap))
        tables += differences("recall before reranking", "Recall before reranking", kept, before, bootstrap, (OQR,))
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
        known = [name for name in columns if not np.isnan(scored[baseline].values[name]).all()]
        own = scored[baseline].values
        cells = _cells([[each.values[name] - own[name] for name in known] for each in others.values()], bootstrap)
        rows: dict[str, Cells] = dict(zip(others, cells, strict=True))
        tables.append(
            Table(
                f"{table} - {baseline}", f"{title}: differences to {baseline}",
                tuple(f"{name.removesuffix(_BEFORE)}, points" for name in known), rows, signed=frozenset(rows),
            )
        )  # fmt: skip
    return tables


def _table(name: str, title: str, scored: Mapping[str, Scored], columns: Sequence[str], bootstrap: Bootstrap) -> Table:
    """The means of every method, with its queries and passages per question; values that no method has are left out."""
    known = [column for column in columns if any(not np.isnan(each.values[column]).all() for each in scored.values())]
    cells = _cells([[each.values[column] for column in known] for each in scored.values()], bootstrap)
    rows: dict[str, Cells] = {
        row: [*own, Cell(each.queries), Cell(each.passages)]
        for (row, each), own in zip(scored.items(), cells, strict=True)
    }
    shown = tuple(f"{column.removesuffix(_BEFORE)} %" for column in known)
    return Table(name, title, (*shown, "queries", "passages"), rows)


def _cells(values_RN: Sequence[Sequence[NDArray[np.float64]]], bootstrap: Bootstrap) -> list[list[Cell | None]]:
    """The mean of every array of every row, over its known values, with its interval."""
    flat = [values_N for row in values_RN for values_N in row]
    cells = iter(known_percent_cells(np.stack(flat), bootstrap) if flat else [])
    return [[next(cells) for _ in row] for row in values_RN]
