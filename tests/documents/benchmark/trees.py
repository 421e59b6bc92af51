"""Tree edit distance of ordered labelled trees (Zhang and Shasha, 1989), and that of sequences (Levenshtein)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Tree(NamedTuple):
    """An ordered tree."""

    label: Any
    children: "tuple[Tree, ...]" = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return 1 + sum(child.size for child in self.children)


def _postorder(tree: Tree, start: int = 0) -> list[tuple[Any, int]]:
    """Label and position of the leftmost leaf of each node, children before parents."""
    nodes: list[tuple[Any, int]] = []
    for child in tree.children:
        nodes += _postorder(child, start + len(nodes))
    return [*nodes, (tree.label, start)]


def tree_edit_distance(one: Tree, other: Tree, relabel: Callable[[Any, Any], float]) -> float:
    """Least total cost of deleting, inserting and relabelling nodes that makes one tree the other.

    Deleting or inserting a node costs 1; the children of a deleted node take its place. Time grows with the product of
    the sizes times the depths; meant for trees of up to some thousand nodes in total and a depth far below Python's
    limit of recursion.

    Args:
        one: A tree.
        other: The tree it is to become.
        relabel: Cost of turning a label into another, from 0; called once for each pair that is needed.
    """
    first, second = _postorder(one), _postorder(other)
    # nodes with a left sibling, and the root
    roots, other_roots = (sorted({left: at for at, (_, left) in enumerate(tree)}.values()) for tree in (first, second))
    distance = [[0.0] * len(second) for _ in first]
    for i in roots:
        for j in other_roots:  # the subtrees below both, by those of their forests of leading nodes
            i0, j0 = first[i][1], second[j][1]
            rows = [[float(column) for column in range(j - j0 + 2)]]
            for x in range(i0, i + 1):
                label, left = first[x]
                above, row = rows[-1], [rows[-1][0] + 1]
                for column, y in enumerate(range(j0, j + 1)):
                    other_label, other_left = second[y]
                    best = min(above[column + 1], row[column]) + 1
                    if left == i0 and other_left == j0:  # both forests are whole trees
                        if above[column] < best:
                            best = min(best, above[column] + relabel(label, other_label))
                        distance[x][y] = best
                    else:
                        best = min(best, rows[left - i0][other_left - j0] + distance[x][y])
                    row.append(best)
                rows.append(row)
    return distance[-1][-1]


def levenshtein(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Least number of insertions, deletions and replacements of items that make one sequence the other.

    Bit-parallel (Myers, 1999, as Hyyrö, 2001, gives it): each item of `other` costs a few operations on an integer of
    `len(one)` bits.
    """
    one, other = sorted((one, other), key=len, reverse=True)
    places: dict[Any, int] = {}
    for position, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << position
    every, last = (1 << len(one)) - 1, 1 << len(one) >> 1
    higher, lower, distance = every, 0, len(one)  # vertical differences of +1 and -1 in a column of the table
    for item in other:
        match = places.get(item, 0)
        diagonal = (((match & higher) + higher) ^ higher) | match | lower
        rises, falls = lower | ~(diagonal | higher) & every, higher & diagonal
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        higher = (falls | ~(diagonal | rises)) & every
        lower = rises & diagonal & every
    return distance


def similarity(one: Sequence[Any], other: Sequence[Any]) -> float:
    """1 less the edit distance divided by the longer length: 1 for equal sequences, 0 with nothing in common."""
    longest = max(len(one), len(other))
    return 1 - levenshtein(one, other) / longest if longest else 1.0
