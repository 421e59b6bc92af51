"""Tables of a tuning run: each option's gain alone over defaults and similarity matching, the grid, the ceilings.

Shape legend: N questions, R rows.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.answer_scores import Bootstrap, percent_cells
from harness.evaluation.drrag.tuning import Tried
from harness.evaluation.tables import Cell, Cells, Table
from harness.selection.tuned import Tuned

FOLDS = 5
OPTIONS = ("k1", "depth", "threshold", "question_weight", "symmetric")
COLUMNS = ("k1", "depth", "threshold", "question weight", "both orders")
MEASURED = ("recall %", "difference to SM", "difference to the defaults", "documents")
ALL, ELSEWHERE = "all, written", f"all, chosen on other questions ({FOLDS} folds)"
NOTE = """\
CFS, Eq. 4, unfilled. Alone: the best value of one option with the defaults of the others, with no more documents
than allowed or than the defaults hand over. The written options are the best on these
questions, so their gain here is too high; in the last row each fifth of the questions is measured with the options \
that the other
four fifths choose, which is what unseen questions may expect. Differences in points with 95% paired bootstrap \
intervals."""


def folds_of(count: int) -> list[NDArray[np.int64]]:
    """The places of `count` questions, in folds: every fifth question."""
    return [places_N for fold in range(FOLDS) if len(places_N := np.arange(fold, count, FOLDS))]


def elsewhere(tried: Tried, most_documents: float) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Recall and documents of every question under the options that the other folds choose.

    None where these have none.
    """
    count = len(tried.similarity_N)
    recall_N, documents_N = np.empty(count), np.empty(count)
    for fold_N in folds_of(count):
        others = np.setdiff1d(np.arange(count), fold_N)
        row = tried.best(most_documents, among=others.tolist()) if len(others) else None
        if row is None:
            return None
        recall_N[fold_N], documents_N[fold_N] = tried.recall_VN[row, fold_N], tried.documents_VN[row, fold_N]
    return recall_N, documents_N


def alone(tried: Tried, option: str) -> Callable[[Tuned], bool]:
    """Settings that differ from the default in one option at most."""
    return lambda each: all(getattr(each, name) == getattr(tried.default, name) for name in OPTIONS if name != option)


def ablation_table(tried: Tried, most_documents: float, bootstrap: Bootstrap) -> Table:
    """One row per option alone, and all together."""
    limit = max(most_documents, float(tried.means()[1][tried.default_row]))
    picked: dict[str, int | None] = {"defaults": tried.default_row}
    for option, name in zip(OPTIONS, COLUMNS, strict=True):
        if len({getattr(each, option) for each in tried.settings}) > 1:
            picked[f"{name} alone"] = tried.best(limit, alone(tried, option))
    picked[ALL] = tried.best(most_documents)
    measured = {
        name: (tried.recall_VN[row].astype(float), tried.documents_VN[row].astype(float))
        for name, row in picked.items()
        if row is not None
    }
    if (found := elsewhere(tried, most_documents)) is not None:
        measured[ELSEWHERE] = found
    cells = _cells(tried, measured, bootstrap)
    rows: dict[str, Cells] = {}
    for name in (*picked, *([ELSEWHERE] if ELSEWHERE in measured else [])):
        row = picked.get(name)
        values: Cells = [None] * len(COLUMNS) if row is None else _values(tried.settings[row])
        rows[name] = [*values, *cells[name]]
    return Table(
        f"tuning, k = {tried.k}",
        f"Options of CFS on these questions, k = {tried.k}"
        + f" with at most {most_documents:g} documents on average" * (most_documents < tried.k),
        COLUMNS + MEASURED,
        rows,
        note=NOTE,
        signed=frozenset(MEASURED[1:3]),
        column_decimals={"threshold": 4},
    )


def _values(setting: Tuned) -> list[Cell]:
    whole = [setting.k1, setting.depth, setting.threshold, setting.question_weight, int(setting.symmetric)]
    return [Cell(value) for value in whole]


def _cells(
    tried: Tried, measured: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]], bootstrap: Bootstrap
) -> dict[str, Cells]:
    """The measured columns of every row; all intervals from the same resamples."""
    recall_RN = np.stack([recall_N for recall_N, _ in measured.values()])
    default_N = tried.recall_VN[tried.default_row].astype(float)
    recall = percent_cells(recall_RN, bootstrap)
    over_sm = percent_cells(recall_RN - tried.similarity_N, bootstrap)
    over_default = percent_cells(recall_RN - default_N, bootstrap)
    return {
        name: [recall[n], over_sm[n], None if name == "defaults" else over_default[n], Cell(float(documents_N.mean()))]
        for n, (name, (_, documents_N)) in enumerate(measured.items())
    }


def grid_tables(tried: Tried, most_documents: float) -> list[Table]:
    """The best recall over thresholds by depth, k1, question weight and orders.

    Also recall by threshold of the best of these.
    """
    recall_V, documents_V = tried.means()
    depths = sorted({each.depth for each in tried.settings})
    best: dict[str, dict[int, float]] = {}
    for row, each in enumerate(tried.settings):
        of = best.setdefault(_label(each.k1, each.question_weight, each.symmetric), dict.fromkeys(depths, float("nan")))
        if documents_V[row] <= most_documents + 1e-9:
            of[each.depth] = float(np.fmax(of[each.depth], 100 * recall_V[row]))
    rows: dict[str, Cells] = {name: [Cell(of[depth]) for depth in depths] for name, of in best.items()}
    title = f"Recall % of CFS at the best threshold, k = {tried.k}"
    by_depth = Table(f"grid, k = {tried.k}", title, tuple(f"depth {depth}" for depth in depths), rows)
    chosen = tried.best(most_documents)
    if chosen is None:
        return [by_depth]
    its = tried.settings[chosen]
    by_threshold: dict[str, Cells] = {
        f"{each.threshold:.4f}": [Cell(100 * float(recall_V[row])), Cell(float(documents_V[row]))]
        for row, each in enumerate(tried.settings)
        if (each.k1, each.depth, each.question_weight, each.symmetric)
        == (its.k1, its.depth, its.question_weight, its.symmetric)
    }
    title = f"CFS by threshold, k = {tried.k}: {_label(its.k1, its.question_weight, its.symmetric)}, depth {its.depth}"
    return [by_depth, Table(f"thresholds, k = {tried.k}", title, ("recall %", "documents"), by_threshold)]


def ceiling_table(k: int, ceiling: Mapping[tuple[int, int, int], float], similarity: float) -> Table:
    """What CFS reaches with a perfect classifier: the bound that retrieval, k1 and depth set to any trained one."""
    depths = sorted({depth for _, _, depth in ceiling})
    rows: dict[str, Cells] = {
        _label(k1, weight, False): [Cell(100 * ceiling[weight, k1, depth]) for depth in depths]
        for weight, k1 in dict.fromkeys((weight, k1) for weight, k1, _ in ceiling)
    }
    return Table(
        f"ceilings, k = {k}",
        f"Recall % of CFS with a perfect classifier, k = {k}",
        tuple(f"depth {depth}" for depth in depths),
        rows,
        note=f"SM: {100 * similarity:.2f}. Perfect: positive if both documents are gold.",
    )


def _label(k1: int, question_weight: int, symmetric: bool) -> str:
    return f"k1 {k1}, question x {question_weight}" + ", both orders" * symmetric
