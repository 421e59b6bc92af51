"""Tree edit distance of ordered labelled trees (Zhang and Shasha, 1989), and that of sequences (Levenshtein)."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Label = TypeVar("Label")
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Tree(Generic[Label]):
    """An ordered tree."""

    label: Label
    children: "tuple[Tree[Label], ...]" = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return 1 + sum(child.size for child in self.children)


class _Postorder(Generic[Label]):
    """A tree's nodes, children before parents, and what the algorithm needs of each."""

    def __init__(self, tree: Tree[Label]) -> None:
        self.labels: list[Label] = []
        self.leftmost: list[int] = []  # position of each node's leftmost leaf
        self._add(tree)
        last = {left: node for node, left in enumerate(self.leftmost)}
        self.keyroots = sorted(last.values())  # nodes with a left sibling, and the root

    def _add(self, tree: Tree[Label]) -> int:
        leftmost = [self._add(child) for child in tree.children]
        self.leftmost.append(leftmost[0] if leftmost else len(self.labels))
        self.labels.append(tree.label)
        return self.leftmost[-1]


def tree_edit_distance(one: Tree[Label], other: Tree[Label], relabel: Callable[[Label, Label], float]) -> float:
    """Least total cost of deleting, inserting and relabelling nodes that makes one tree the other.

    Deleting or inserting a node costs 1; the children of a deleted node take its place. Time grows with the product of
    the sizes times the depths; meant for trees of up to some thousand nodes in total and a depth far below Python's
    limit of recursion.

    Args:
        one: A tree.
        other: The tree it is to become.
        relabel: Cost of turning a label into another, from 0; called once for each pair that is needed.
    """
    first, second = _Postorder(one), _Postorder(other)
    distance = [[0.0] * len(second.labels) for _ in first.labels]
    for i in first.keyroots:
        for j in second.keyroots:
            _fill(first, second, i, j, distance, relabel)
    return distance[-1][-1]


def _fill(
    first: _Postorder[Label],
    second: _Postorder[Label],
    i: int,
    j: int,
    distance: list[list[float]],
    relabel: Callable[[Label, Label], float],
) -> None:
    """Distances of the subtrees below two keyroots, by those of their forests of leading nodes."""
    i0, j0 = first.leftmost[i], second.leftmost[j]
    above = [float(column) for column in range(j - j0 + 2)]
    rows = [above]
    for x in range(i0, i + 1):
        row = [above[0] + 1]
        left_of_x = first.leftmost[x]
        for column, y in enumerate(range(j0, j + 1)):
            best = min(above[column + 1], row[column]) + 1
            if left_of_x == i0 and second.leftmost[y] == j0:  # both forests are whole trees
                if above[column] < best:
                    best = min(best, above[column] + relabel(first.labels[x], second.labels[y]))
                distance[x][y] = best
            else:
                best = min(best, rows[left_of_x - i0][second.leftmost[y] - j0] + distance[x][y])
            row.append(best)
        rows.append(row)
        above = row


def levenshtein(one: Sequence[Item], other: Sequence[Item]) -> int:
    """Least number of insertions, deletions and replacements of items that make one sequence the other.

    Bit-parallel (Myers, 1999, as Hyyrö, 2001, gives it): each item of `other` costs a few operations on an integer of
    `len(one)` bits.
    """
    if len(one) < len(other):
        one, other = other, one
    if not other:
        return len(one)
    places: dict[Item, int] = {}
    for position, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << position
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
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


def similarity(one: Sequence[Item], other: Sequence[Item]) -> float:
    """1 less the edit distance divided by the longer length.

    1 for equal sequences, 0 for those with nothing in common.
    """
    longest = max(len(one), len(other))
    return 1 - levenshtein(one, other) / longest if longest else 1.0
