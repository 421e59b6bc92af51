"""The papers' published results, for comparison in our tables."""

import json
from collections.abc import Sequence
from functools import cache
from math import nan
from pathlib import Path
from typing import Any, Literal, get_args

from harness.evaluation.tables import Cell, Cells

DrRagPaper = Literal["musique", "hotpotqa", "2wiki"]
DmqrPaper = Literal["ambignq", "hotpotqa", "freshqa"]
Paper = Literal["musique", "hotpotqa", "2wiki", "nq", "triviaqa", "ambignq", "freshqa", "strategyqa"]
DR_RAG: tuple[Paper, ...] = get_args(DrRagPaper)
RE_RAG: tuple[Paper, ...] = ("nq", "triviaqa")
DMQR: tuple[Paper, ...] = get_args(DmqrPaper)
_RE_RAG_2_KS = (1, 5, 10, 20)


@cache
def rows_of(name: str) -> dict[str, Any]:
    """The rows of a paper's table, of which `paper_figures.json` names the columns."""
    tables = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    rows: dict[str, Any] = tables[name]["rows"]
    return rows


def paper_name(paper: Paper) -> str:
    """The name of the paper that reports results on this data set; DR-RAG for one that other papers have, too."""
    if paper == "strategyqa":
        return "MSRAG"
    return "DR-RAG" if paper in DR_RAG else "RE-RAG" if paper in RE_RAG else "DMQR-RAG"


def answers(paper: Paper, k: int | None = None) -> dict[str, Cells]:
    """EM, F1 and Acc of DR-RAG's Tables 2-4, 6 and 7, RE-RAG's Table 1, or DMQR-RAG's Table 2.

    Of DR-RAG, all but Table 2 are at this k, or at every k.
    """
    if paper not in (*DR_RAG, *RE_RAG):
        rows_2 = dmqr(paper, (2,))
        return {
            name: [Cell(row[each]) if each in row else None for each in ("EM", "F1", "Acc")]
            for name, row in rows_2.items()
        }
    if paper in RE_RAG:
        return re_rag(paper, 1, (0, None, None))
    return {name: cells[:3] for name, cells in dr_rag_answers(paper, k).items()}


def dr_rag_answers(paper: Paper, k: int | None = None) -> dict[str, Cells]:
    """EM, F1, Acc, steps and time of DR-RAG's Tables 2-4, 6 and 7; of all but Table 2 without the last two.

    All but Table 2 are at this k, or at every k.
    """
    place = DR_RAG.index(paper)
    rows = {f"{name} (Table 2)": each[place] for name, each in rows_of("DR-RAG, Table 2").items()}
    of_budget = rows_of("DR-RAG, Table 3")
    further = ("Llama3-8B, {}", 4), ("Llama3-8B, CFS, classifier {}", 6), ("{}, CFS, 500 questions", 7)
    for budget in [str(k)] if str(k) in of_budget else of_budget:
        rows |= {f"{name}, k = {budget} (Table 3)": each[place] for name, each in of_budget[budget].items()}
        for template, table in further if paper == "hotpotqa" else ():
            named = rows_of(f"DR-RAG, Table {table}")[budget].items()
            rows |= {f"{template.format(name)}, k = {budget} (Table {table})": each for name, each in named}
    return {name: [*map(Cell, each), *[None] * (5 - len(each))] for name, each in rows.items()}


def dr_rag_table_5(dataset: DrRagPaper, row: str, k: int) -> tuple[float, float] | None:
    """DR-RAG's Table 5: recall (per cent) and actual number of documents; None if the table lacks this row or k."""
    found = rows_of("DR-RAG, Table 5").get(str(k), {}).get(row)
    return tuple(found[DR_RAG.index(dataset)]) if found else None


def re_rag(paper: Paper | None, table: int, layout: Sequence[int | None]) -> dict[str, Cells]:
    """The rows of one of RE-RAG's Tables 1, 2, 4, 5 and 7 for a data set; none for another paper's.

    Args:
        paper: The data set.
        table: Its number.
        layout: Which of the row's figures stands in each of our columns; None: nothing.
    """
    return _cells(f"RE-RAG, Table {table}", RE_RAG.index(paper), layout) if paper in RE_RAG else {}


def _cells(table: str, place: int | None, layout: Sequence[int | None]) -> dict[str, Cells]:
    """The figures of each row for the data set at a place, None: of all data sets, in our columns."""
    found: dict[str, Cells] = {}
    for name, row in rows_of(table).items():
        own = row if place is None else row[place]
        values = own if isinstance(own, list) else [nan if own is None else own]
        found[name] = [None if each is None else Cell(values[each]) for each in layout]
    return found


def recall(paper: Paper | None, ks: tuple[int, ...]) -> dict[str, Cells]:
    """RE-RAG's Table 2 at `ks`, then recall of all candidates."""
    return re_rag(paper, 2, [*(_RE_RAG_2_KS.index(k) if k in _RE_RAG_2_KS else None for k in ks), len(_RE_RAG_2_KS)])


def language_model(paper: Paper | None, counts: Sequence[int]) -> dict[str, Cells]:
    """RE-RAG's Table 6: EM with the first `counts` contexts; nothing if it has none of them."""
    table = rows_of("RE-RAG, Table 6")
    if paper not in RE_RAG or not table.keys() & {*map(str, counts)}:
        return {}
    of_counts = [table.get(str(count)) for count in counts]
    place = RE_RAG.index(paper)
    return {name: [Cell(each[name][place]) if each else None for each in of_counts] for name in table["5"]}


def dmqr(paper: Paper | None, tables: Sequence[Literal[2, 3, 4]]) -> dict[str, dict[str, float]]:
    """Rows of DMQR-RAG's Tables 2 to 4: H@5, P@5, EM, F1 and Acc, as far as the paper has them for this data set."""
    if paper not in DMQR:
        return {}
    place = DMQR.index(paper)
    measures = ("H@5", "P@5", "Acc") if paper == "freshqa" else ("H@5", "P@5", "EM", "F1")
    rows = {
        f"{name} (Table {table})": dict(zip(measures, row[place], strict=True))
        for table in tables
        for name, row in rows_of(f"DMQR-RAG, Table {table}").items()
    }
    return {name: {each: value for each, value in row.items() if value is not None} for name, row in rows.items()}


def dmqr_average_falls() -> dict[str, Cell]:
    """How much P@5 falls without each strategy, in points: the last column of DMQR-RAG's Table 4."""
    return {f"{name} (Table 4)": Cell(value) for name, value in rows_of("DMQR-RAG, Table 4, Avg").items()}


def msrag(paper: Paper | None, table: int) -> dict[str, Cells]:
    """EM, F1 and accuracy of a table of MSRAG (Llama-2-7B-Chat); empty for a data set that it has not.

    Of 2WikiMultiHopQA and HotpotQA without accuracy, of StrategyQA accuracy alone.
    """
    places: dict[str | None, tuple[int | None, ...]] = {
        "2wiki": (0, 1, None), "hotpotqa": (2, 3, None), "strategyqa": (None, None, 4),
    }  # fmt: skip
    return _cells(f"MSRAG, Table {table}", None, places[paper]) if paper in places else {}
