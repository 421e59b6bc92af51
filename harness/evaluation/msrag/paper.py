"""MSRAG's published results.

Tables 1 to 3, EM and F1 in per cent on 2WikiMultiHopQA and HotpotQA, accuracy on StrategyQA (Llama-2-7B-Chat).
"""

from harness.evaluation.paper_figures import Paper
from harness.evaluation.tables import Cell, Cells

_Row = tuple[float, float, float, float, float]  # 2Wiki EM, F1; HotpotQA EM, F1; StrategyQA accuracy
_NO_RAG = (13.5, 12.82, 10.8, 11.23, 55.7)
_MSRAG = (50.8, 56.46, 30.3, 30.66, 86.3)
TABLES: dict[int, dict[str, _Row]] = {
    1: {
        "No-RAG": _NO_RAG,
        "SR-RAG": (16.9, 25.49, 16.4, 24.99, 65.4),
        "FL-RAG": (11.2, 19.22, 14.6, 21.07, 63.5),
        "FLARE": (14.3, 21.34, 14.9, 22.08, 62.7),
        "FS-RAG": (18.9, 26.52, 21.4, 30.35, 62.9),
        "MSRAG (selection uses the gold answer)": _MSRAG,
    },
    2: {"No-RAG": _NO_RAG, "GPT-Retrieval": (17.2, 16.85, 24.1, 24.27, 67.7)},
    3: {
        "w/o GPT (selection uses the gold answer)": (20.1, 20.13, 18.6, 18.91, 76.4),
        "w/o Web (selection uses the gold answer)": (25.4, 25.18, 27.8, 28.26, 80.6),
        "MSRAG (selection uses the gold answer)": _MSRAG,
    },
}
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
        for name, row in TABLES[table].items()
    }
