"""MSRAG's published results.

Tables 1 to 3, EM and F1 in per cent on 2WikiMultiHopQA and HotpotQA, accuracy on StrategyQA (Llama-2-7B-Chat).
"""

from harness.evaluation.paper_figures import Paper, rows_of
from harness.evaluation.tables import Cell, Cells

_PLACES: dict[Paper, tuple[int | None, int | None, int | None]] = {  # of EM, F1 and accuracy
    "2wiki": (0, 1, None),
    "hotpotqa": (2, 3, None),
    "strategyqa": (None, None, 4),
}


def published(paper: Paper | None, table: int, further: int) -> dict[str, Cells]:
    """The rows of a table of the paper for a data set: EM, F1, accuracy, then `further` empty cells.

    Empty for another data set.
    """
    if paper not in _PLACES:
        return {}
    return {
        name: [*(None if place is None else Cell(row[place]) for place in _PLACES[paper]), *[None] * further]
        for name, row in rows_of(f"MSRAG, Table {table}").items()
    }
