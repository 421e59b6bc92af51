"""Tables that were read beside the true ones.

TEDS, the similarity of two tables' trees, and which table is matched with which.
"""

from collections.abc import Sequence
from unicodedata import normalize

from scipy.optimize import linear_sum_assignment

from documents.fidelity import words
from tests.documents.benchmark.trees import Tree, similarity, tree_edit_distance

Rows = Sequence[Sequence[str]]


def table_scores(true: Sequence[Rows], read: Sequence[Rows]) -> tuple[float | None, int]:
    """Mean TEDS over the true tables, and how many of the tables read were matched.

    Each table that was read is matched with at most one true one, so that the sum of TEDS is largest; a true table
    without a match counts 0. Two tables may be matched if they share at least half of the distinct words of the one
    that has fewer.
    """
    if not true:
        return None, 0
    table = [[0.0] * len(read) for _ in true]
    for i, one in enumerate(true):
        for j, other in enumerate(read):
            if common := _words(one) & _words(other):
                fewer = min(len(_words(one)), len(_words(other)))
                table[i][j] = teds(one, other) if 2 * len(common) >= fewer else 0.0
    pairs = zip(*linear_sum_assignment(table, maximize=True), strict=True) if read else ()
    chosen = [table[i][j] for i, j in pairs]
    return sum(chosen) / len(true), sum(score > 0 for score in chosen)


def _words(rows: Rows) -> set[str]:
    return {word for row in rows for cell in row for word in words(cell)}


def teds(one: Rows, other: Rows) -> float:
    """Tree-edit-distance similarity of two tables (Zhong et al., 2020): 1 for equal ones.

    Trees are table, rows, cells; relabelling a cell costs the normalized edit distance of the characters, in NFKC (a
    truth may raise a figure or not) and with blanks collapsed. The score is 1 less the distance divided by the larger
    number of rows and cells. A cell that repeats the one on its left or above counts as empty, so that it does not
    matter whether a spanning cell is repeated.
    """
    first, second = _table_tree(one), _table_tree(other)
    nodes = max(first.size, second.size) - 1
    if not nodes:
        return 1.0
    return max(0.0, 1 - tree_edit_distance(first, second, _cell_cost) / nodes)


def _table_tree(rows: Rows) -> Tree[tuple[str, str]]:
    plain = [[" ".join(normalize("NFKC", cell).split()) for cell in row] for row in rows]

    def cell(x: int, y: int) -> Tree[tuple[str, str]]:
        text = plain[y][x]
        is_repeated = (x and plain[y][x - 1] == text) or (y and plain[y - 1][x : x + 1] == [text])
        return Tree(("cell", "" if is_repeated else text))

    lines = [tuple(cell(x, y) for x in range(len(row))) for y, row in enumerate(plain)]
    return Tree(("table", ""), tuple(Tree(("row", ""), cells) for cells in lines))


def _cell_cost(one: tuple[str, str], other: tuple[str, str]) -> float:
    return 1.0 if one[0] != other[0] else 1 - similarity(one[1], other[1])
