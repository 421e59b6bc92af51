"""The papers' published results, for comparison in our tables."""

from collections.abc import Sequence
from typing import Literal, get_args

from harness.evaluation.tables import Cell, Cells

DrRagPaper = Literal["musique", "hotpotqa", "2wiki"]
DmqrPaper = Literal["ambignq", "hotpotqa", "freshqa"]
Paper = Literal["musique", "hotpotqa", "2wiki", "nq", "triviaqa", "ambignq", "freshqa", "strategyqa"]
DR_RAG: tuple[Paper, ...] = get_args(DrRagPaper)
RE_RAG: tuple[Paper, ...] = ("nq", "triviaqa")
DMQR: tuple[Paper, ...] = get_args(DmqrPaper)

Triple = tuple[float, float, float]  # EM, F1, Acc in per cent

# DR-RAG, Table 2 (Llama3-8B): system -> MuSiQue, HotpotQA, 2Wiki
_DR_RAG_2: dict[str, tuple[Triple, Triple, Triple]] = {
    "Single-step Approach": ((13.80, 22.80, 15.20), (34.40, 46.15, 36.40), (41.60, 47.90, 42.80)),
    "Adaptive Retrieval": ((6.40, 15.80, 8.00), (23.60, 32.22, 25.00), (33.20, 39.44, 34.20)),
    "Self-RAG": ((1.60, 8.10, 12.00), (6.80, 17.53, 29.60), (4.60, 19.59, 38.80)),
    "Adaptive-RAG": ((23.60, 31.80, 26.00), (42.00, 53.82, 44.40), (40.60, 49.75, 44.73)),
    "Multi-step Approach": ((23.00, 31.90, 25.80), (44.60, 56.54, 47.00), (49.60, 58.85, 55.40)),
    "DR-RAG": ((26.97, 38.90, 34.03), (48.58, 62.87, 55.68), (49.60, 55.62, 55.18)),
}

# DR-RAG, Table 3: k -> LLM and selection -> MuSiQue, HotpotQA, 2Wiki
_DR_RAG_3: dict[int, dict[str, tuple[Triple, Triple, Triple]]] = {
    3: {
        "gpt-3.5, Adaptive-RAG": ((23.60, 31.80, 26.00), (42.00, 53.82, 44.00), (40.60, 49.75, 46.40)),
        "gpt-3.5, QDC": ((21.40, 32.20, 29.90), (37.80, 51.56, 52.60), (36.20, 48.99, 51.40)),
        "gpt-3.5, CIS": ((23.70, 33.70, 29.40), (41.20, 53.91, 53.40), (38.00, 51.48, 54.20)),
        "gpt-3.5, CFS": ((26.00, 36.20, 35.00), (43.80, 58.83, 55.00), (48.40, 60.13, 64.20)),
        "Llama3-8B, QDC": ((21.30, 32.00, 27.10), (43.85, 56.38, 49.88), (40.84, 48.61, 43.76)),
        "Llama3-8B, CIS": ((20.90, 31.90, 27.00), (44.88, 57.05, 50.94), (42.71, 50.82, 46.45)),
        "Llama3-8B, CFS": ((26.50, 37.40, 32.60), (48.71, 62.42, 55.26), (50.48, 59.29, 56.07)),
    },
    4: {
        "gpt-3.5, QDC": ((25.37, 25.05, 35.70), (42.15, 55.79, 53.31), (50.60, 59.99, 62.20)),
        "gpt-3.5, CIS": ((25.80, 36.50, 35.60), (42.00, 56.10, 54.36), (49.40, 60.40, 65.00)),
        "gpt-3.5, CFS": ((25.80, 37.60, 38.60), (45.00, 60.55, 57.40), (52.40, 63.95, 69.60)),
        "Llama3-8B, QDC": ((25.10, 37.10, 32.00), (46.05, 59.98, 53.09), (45.79, 54.62, 49.70)),
        "Llama3-8B, CIS": ((25.70, 37.50, 32.70), (48.02, 61.43, 54.36), (50.52, 59.54, 55.94)),
        "Llama3-8B, CFS": ((27.10, 39.30, 34.30), (48.30, 62.81, 55.22), (50.30, 59.40, 55.85)),
    },
    6: {
        "gpt-3.5, QDC": ((28.80, 41.30, 38.60), (45.41, 60.09, 61.60), (48.20, 62.58, 67.00)),
        "gpt-3.5, CIS": ((31.20, 42.70, 40.20), (45.80, 60.38, 60.80), (52.60, 65.93, 71.20)),
        "gpt-3.5, CFS": ((28.40, 41.10, 40.60), (48.20, 63.83, 63.60), (49.80, 63.74, 68.40)),
        "Llama3-8B, QDC": ((25.90, 38.10, 33.70), (46.19, 60.21, 54.14), (44.02, 53.08, 48.73)),
        "Llama3-8B, CIS": ((27.50, 39.40, 34.60), (47.34, 61.30, 54.55), (50.59, 59.58, 56.29)),
        "Llama3-8B, CFS": ((27.30, 40.00, 35.20), (48.73, 63.38, 56.56), (48.02, 57.17, 53.63)),
    },
}

# DR-RAG, Table 4 (HotpotQA, Llama3-8B): k -> row, except the rows that repeat Table 3
_DR_RAG_4: dict[int, dict[str, Triple]] = {
    3: {"CFS w/o QDC": (46.26, 59.37, 52.60), "CIS w/o QDC": (44.82, 57.00, 50.88)},
    4: {"CFS w/o QDC": (47.78, 61.63, 54.73), "CIS w/o QDC": (46.54, 59.28, 52.80)},
    6: {"CFS w/o QDC": (48.00, 63.10, 56.29), "CIS w/o QDC": (46.30, 60.00, 53.95)},
}

# DR-RAG, Table 5: k -> row -> data set -> (recall of gold documents in per cent, actual number of documents)
_DR_RAG_5_ROWS = ("BM25", "SM", "QDC", "CIS", "CFS")
_DR_RAG_5 = {
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

# RE-RAG, Table 1: system, contexts -> EM on NQ, TriviaQA
_RE_RAG_1: dict[str, tuple[float, float]] = {
    "RAG, 50 contexts": (44.5, 56.8),
    "FiD base, 100": (48.2, 65.0),
    "FiD large, 100": (51.4, 67.6),
    "FiD-KD base, 100": (50.1, 69.3),
    "FiD-KD large, 100": (54.4, 72.5),
    "ReAtt, 100": (54.7, float("nan")),
    "FiD-KD base, 25": (48.6, 67.4),
    "FiD-KD large, 25": (53.9, 71.2),
    "R2-D2, 25": (55.9, 69.9),
    "RE-RAG base, 25": (49.9, 68.2),
    "RE-RAG mixed, 25": (51.4, 69.5),
    "RE-RAG large, 25": (54.0, 70.2),
}

# RE-RAG, Table 2: ranker -> NQ, TriviaQA -> recall@k in per cent; recall of all 100 contexts: 89.3 and 87.7
_RE_RAG_2_KS = (1, 5, 10, 20)
_RE_RAG_2 = {
    "FiD-KD": ((49.4, 73.8, 79.6, 84.3), (60.1, 77.0, 80.9, 83.6)),
    "RE-RAG base": ((59.5, 77.8, 82.7, 85.5), (67.0, 81.5, 83.6, 85.4)),
    "RE-RAG large": ((61.9, 79.4, 83.6, 86.4), (70.4, 82.2, 84.4, 86.1)),
}
_RE_RAG_2_ALL = (89.3, 87.7)

# RE-RAG, Table 4: recall, precision, F1 of "irrelevant set" in per cent
_RE_RAG_4 = {
    "FiD-KD, retriever": ((73.2, 21.9, 33.7), (64.3, 24.5, 35.5)),
    "RE-RAG base": ((51.3, 33.9, 40.9), (38.9, 46.7, 42.5)),
    "RE-RAG large": ((45.9, 38.3, 41.7), (39.0, 43.2, 41.0)),
}

# RE-RAG, Table 5: accuracy on sets with an answer before and after refusal; share refused of sets without an answer
_RE_RAG_5 = {
    "RE-RAG base": ((58.3, 54.9, 51.3), (78.7, 77.0, 38.9)),
    "RE-RAG large": ((61.5, 57.9, 45.9), (80.4, 77.9, 39.0)),
}

# RE-RAG, Table 6: contexts -> ranker -> EM with gpt-3.5-turbo on NQ, TriviaQA
_RE_RAG_6 = {
    5: {"GPT w/ Retriever": (41.7, 67.3), "GPT w/ RE": (48.8, 70.7)},
    10: {"GPT w/ Retriever": (42.9, 69.0), "GPT w/ RE": (49.3, 71.8)},
}

# RE-RAG, Table 7: EM with a generator trained without the estimator; in the last row both are trained jointly
_RE_RAG_7 = {
    "Baseline": (39.5, 54.9),
    "Baseline w/ RE score": (43.1, 60.1),
    "Baseline w/ RE context": (46.8, 63.9),
    "Baseline w/ RE context, score": (49.6, 67.8),
    "RE-RAG base": (49.9, 68.2),
}

# DMQR-RAG, Tables 2 to 4: H@5 and P@5 judged by GPT-4, EM, F1; for FreshQA instead of these two accuracy judged by
# GPT-4
_Four = tuple[float, float, float, float]
_DMQR_ROW = tuple[_Four, _Four, Triple]  # AmbigNQ, HotpotQA, FreshQA
_NONE = float("nan")
_DMQR_2: dict[str, _DMQR_ROW] = {
    "OQR": ((80.04, 47.02, 51.28, 63.47), (42.24, 18.99, 35.81, 47.83), (71.50, 45.57, 69.00)),
    "RRR": ((73.47, 44.78, 49.28, 62.17), (38.39, 18.28, 36.49, 48.05), (65.67, 40.53, 66.50)),
    "RQ-RAG": ((_NONE, _NONE, 52.48, 63.96), (_NONE, _NONE, 40.32, 54.11), (_NONE, _NONE, 69.67)),
    "Rewrite": ((81.06, 47.17, 51.24, 63.96), (42.08, 18.91, 35.47, 47.39), (70.67, 44.61, 70.83)),
    "Hyde": ((79.65, 59.36, 53.95, 64.83), (46.92, 25.23, 39.36, 51.74), (61.10, 44.04, 62.83)),
    "RAG-Fusion": ((86.33, 53.62, 55.47, 68.59), (51.58, 26.91, 40.00, 53.56), (76.17, 60.00, 74.50)),
    "DMQR-RAG": ((88.08, 62.43, 55.24, 68.57), (54.18, 27.93, 41.12, 53.99), (77.83, 60.03, 76.67)),
}
_DMQR_3: dict[str, _DMQR_ROW] = {  # the rows of GPT-4 are those of Table 2
    "Llama3 + Rewrite": ((77.64, 44.99, 49.87, 62.17), (39.36, 17.82, 35.27, 46.83), (71.00, 45.97, 71.50)),
    "Llama3 + Hyde": ((64.80, 42.41, 42.88, 53.77), (34.47, 17.44, 31.82, 42.23), (53.83, 34.61, 59.17)),
    "Llama3 + Ours": ((86.04, 58.69, 54.75, 67.53), (51.22, 26.23, 39.65, 52.51), (73.33, 57.30, 74.50)),
    "Qwen2 + Rewrite": ((78.54, 45.34, 50.31, 62.35), (41.54, 18.83, 35.50, 47.25), (71.02, 43.35, 71.19)),
    "Qwen2 + Hyde": ((59.96, 36.63, 39.42, 50.02), (31.24, 15.13, 31.23, 41.63), (53.77, 34.21, 59.13)),
    "Qwen2 + Ours": ((86.23, 58.25, 54.78, 67.37), (50.71, 25.77, 39.88, 52.49), (76.38, 58.69, 75.04)),
}
_DMQR_4: dict[str, _DMQR_ROW] = {  # Llama3-8B
    "Ours": ((86.04, 58.69, 54.75, 67.53), (51.22, 26.23, 39.65, 52.51), (73.33, 57.30, 74.50)),
    "w/o GQR": ((85.65, 58.02, 54.04, 67.26), (51.18, 25.81, 39.37, 52.00), (74.00, 56.60, 75.33)),
    "w/o KWR": ((85.50, 57.67, 54.37, 67.40), (50.64, 25.47, 39.37, 52.00), (73.67, 56.40, 72.50)),
    "w/o PAR": ((85.48, 56.22, 53.69, 66.84), (50.03, 25.24, 38.98, 51.58), (74.17, 56.73, 74.67)),
    "w/o CCE": ((85.58, 57.96, 54.38, 67.35), (50.47, 25.58, 39.57, 52.21), (74.17, 56.77, 74.00)),
}


def paper_name(paper: Paper) -> str:
    """The name of the paper that reports results on this data set; DR-RAG for one that other papers have, too."""
    if paper == "strategyqa":
        return "MSRAG"
    return "DR-RAG" if paper in DR_RAG else "RE-RAG" if paper in RE_RAG else "DMQR-RAG"


def answers(paper: Paper, k: int | None = None) -> dict[str, Cells]:
    """EM, F1 and Acc of DR-RAG's Tables 2-4, RE-RAG's Table 1, or DMQR-RAG's Table 2.

    Of DR-RAG, Tables 3 and 4 are at this k, or at every k.
    """
    if paper not in (*DR_RAG, *RE_RAG):
        rows_2 = dmqr(paper, (2,))
        return {
            name: [Cell(row[each]) if each in row else None for each in ("EM", "F1", "Acc")]
            for name, row in rows_2.items()
        }
    if paper in RE_RAG:
        return {name: [Cell(row[RE_RAG.index(paper)]), None, None] for name, row in _RE_RAG_1.items()}
    place = DR_RAG.index(paper)
    rows = {f"{name} (Table 2)": triples[place] for name, triples in _DR_RAG_2.items()}
    for budget in _DR_RAG_3 if k not in _DR_RAG_3 else (k,):
        rows |= {f"{name}, k = {budget} (Table 3)": each[place] for name, each in _DR_RAG_3[budget].items()}
        if paper == "hotpotqa":
            rows |= {f"Llama3-8B, {name}, k = {budget} (Table 4)": each for name, each in _DR_RAG_4[budget].items()}
    return {name: [Cell(value) for value in triple] for name, triple in rows.items()}


def dr_rag_table_5(dataset: DrRagPaper, row: str, k: int) -> tuple[float, float] | None:
    """DR-RAG's Table 5: recall (per cent) and actual number of documents; None if the table lacks this row or k."""
    if k not in _DR_RAG_5 or row not in _DR_RAG_5_ROWS:
        return None
    return _DR_RAG_5[k][_DR_RAG_5_ROWS.index(row)][DR_RAG.index(dataset)]


def recall(paper: Paper | None, ks: tuple[int, ...]) -> dict[str, Cells]:
    """RE-RAG's Table 2 at `ks`, then recall of all candidates."""
    if paper not in RE_RAG:
        return {}
    place = RE_RAG.index(paper)
    rows: dict[str, Cells] = {}
    for name, values in _RE_RAG_2.items():
        at = dict(zip(_RE_RAG_2_KS, values[place], strict=True))
        rows[name] = [*(Cell(at[k]) if k in at else None for k in ks), Cell(_RE_RAG_2_ALL[place])]
    return rows


def ablation(paper: Paper | None) -> dict[str, Cells]:
    """RE-RAG's Table 7: EM, `thorough`."""
    return {
        name: [Cell(row[RE_RAG.index(paper)]), None, None, None] for name, row in _RE_RAG_7.items() if paper in RE_RAG
    }


def language_model(paper: Paper | None, counts: Sequence[int]) -> dict[str, Cells]:
    """RE-RAG's Table 6: EM with the first `counts` contexts; nothing if it has none of them."""
    if paper not in RE_RAG or not _RE_RAG_6.keys() & {*counts}:
        return {}
    place = RE_RAG.index(paper)
    return {
        name: [Cell(_RE_RAG_6[count][name][place]) if count in _RE_RAG_6 else None for count in counts]
        for name in _RE_RAG_6[5]
    }


def detection(paper: Paper | None) -> dict[str, Cells]:
    """RE-RAG's Table 4: recall, precision and F1."""
    return {
        name: [Cell(value) for value in row[RE_RAG.index(paper)]] for name, row in _RE_RAG_4.items() if paper in RE_RAG
    }


def refusal(paper: Paper | None) -> dict[str, Cells]:
    """RE-RAG's Table 5: accuracy on sets with an answer before and after refusal; share refused of sets without one."""
    return {
        name: [None, *(Cell(value) for value in row[RE_RAG.index(paper)][:2]), None, Cell(row[RE_RAG.index(paper)][2])]
        for name, row in _RE_RAG_5.items()
        if paper in RE_RAG
    }


def dmqr(paper: Paper | None, tables: Sequence[Literal[2, 3, 4]]) -> dict[str, dict[str, float]]:
    """Rows of DMQR-RAG's Tables 2 to 4: H@5, P@5, EM, F1 and Acc, as far as the paper has them for this data set."""
    if paper not in DMQR:
        return {}
    place = DMQR.index(paper)
    measures = ("H@5", "P@5", "Acc") if paper == "freshqa" else ("H@5", "P@5", "EM", "F1")
    rows = {
        f"{name} (Table {table})": dict(zip(measures, row[place], strict=True))
        for table in tables
        for name, row in {2: _DMQR_2, 3: _DMQR_3, 4: _DMQR_4}[table].items()
    }
    return {name: {each: value for each, value in row.items() if value == value} for name, row in rows.items()}
