"""The papers' published results, for comparison in our tables."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from harness.evaluation.tables import Cell, Cells

Paper = Literal["musique", "hotpotqa", "2wiki", "nq", "triviaqa", "ambignq", "freshqa", "strategyqa"]
DR_RAG_BUDGETS = (3, 4, 6)  # k of its tables


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return tables


def published(table: str, paper: Paper | None, columns: Sequence[str]) -> dict[str, Cells]:
    """The rows of a paper's table for a data set; none if the paper has not measured it.

    Args:
        table: Its name in `paper_figures.json`, such as `RE-RAG, Table 2`.
        paper: The data set.
        columns: Names of the table's columns in the order of ours; another name leaves a column empty.
    """
    found = _tables()[table]
    if paper not in found["data sets"]:
        return {}
    place = found["data sets"].index(paper)
    rows = {name: dict(zip(found["columns"], row[place], strict=True)) for name, row in found["rows"].items()}
    return {
        name: [None if row.get(column) is None else Cell(row[column]) for column in columns]
        for name, row in rows.items()
    }


def paper_name(paper: Paper) -> str:
    """The name of the paper that reports results on this data set; DR-RAG for one that other papers have, too."""
    names = {"nq": "RE-RAG", "triviaqa": "RE-RAG", "ambignq": "DMQR-RAG", "freshqa": "DMQR-RAG", "strategyqa": "MSRAG"}
    return names.get(paper, "DR-RAG")


def answers(
    paper: Paper | None, k: int | None = None, columns: Sequence[str] = ("EM", "F1", "Acc")
) -> dict[str, Cells]:
    """The answers of DR-RAG's Tables 2-4, 6 and 7, RE-RAG's Table 1, or DMQR-RAG's Table 2.

    Of DR-RAG, all but Table 2 are at this k, or at every k.
    """
    if paper is None or paper_name(paper) != "DR-RAG":
        return published("RE-RAG, Table 1", paper, columns) | published("DMQR-RAG, Table 2", paper, columns)
    rows = published("DR-RAG, Table 2", paper, columns)
    for budget in (k,) if k in DR_RAG_BUDGETS else DR_RAG_BUDGETS:
        for table in ("Table 3", "Tables 4, 6 and 7"):
            rows |= published(f"DR-RAG, {table}, k = {budget}", paper, columns)
    return rows
