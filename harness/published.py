"""Figures that the papers print, to stand beside ours."""

from typing import Literal

DrRagDataset = Literal["musique", "hotpotqa", "2wiki"]

# DR-RAG, Table 5: k -> row -> data set -> (recall of gold documents in per cent, actual number of documents)
_ROWS = ("BM25", "SM", "QDC", "CIS", "CFS")
_DATASETS = ("musique", "hotpotqa", "2wiki")
_TABLE_5 = {
    3: (
        ((37.57, 3.00), (64.67, 3.00), (57.46, 3.00)),
        ((58.31, 3.00), (80.33, 3.00), (74.34, 3.00)),
        ((58.44, 3.00), (86.12, 3.00), (74.48, 3.00)),
        ((57.42, 2.82), (79.80, 2.74), (74.34, 2.60)),
        ((66.45, 2.95), (88.89, 2.89), (87.81, 2.83)),
    ),
    4: (
        ((43.52, 4.00), (70.72, 4.00), (63.95, 4.00)),
        ((66.20, 4.00), (85.57, 4.00), (80.05, 4.00)),
        ((70.30, 4.00), (90.20, 4.00), (89.89, 4.00)),
        ((66.45, 3.61), (88.37, 3.43), (89.71, 3.03)),
        ((73.83, 3.82), (92.28, 3.75), (94.13, 3.41)),
    ),
    6: (
        ((51.69, 6.00), (79.93, 6.00), (73.95, 6.00)),
        ((76.78, 6.00), (92.59, 6.00), (88.83, 6.00)),
        ((79.46, 6.00), (94.00, 6.00), (95.04, 6.00)),
        ((77.13, 5.23), (93.24, 4.72), (94.79, 3.72)),
        ((83.01, 5.69), (96.27, 5.35), (98.04, 4.63)),
    ),
}


def dr_rag_table_5(dataset: DrRagDataset, row: str, k: int) -> tuple[float, float] | None:
    """Recall (per cent) and actual number of documents that the paper prints; None where it prints none."""
    if k not in _TABLE_5 or row not in _ROWS:
        return None
    return _TABLE_5[k][_ROWS.index(row)][_DATASETS.index(dataset)]
