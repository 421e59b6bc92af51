"""Edit distances of trees and sequences: hand-worked, against brute force, and what every distance has."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents.benchmark.trees import Tree, levenshtein, similarity, tree_edit_distance

Forest = tuple[Tree[str], ...]
TREES = st.recursive(
    st.sampled_from("abc").map(Tree),
    lambda children: st.builds(Tree, st.sampled_from("abc"), st.lists(children, max_size=3).map(tuple)),
    max_leaves=5,
)


def differ(one: str, other: str) -> float:
    return float(one != other)


@cache
def forest_distance(one: Forest, other: Forest) -> float:
    """The definition by recursion over the last trees of two forests: no tables, no order of filling."""
    if not one or not other:
        return sum(tree.size for tree in one + other)
    first, second = one[-1], other[-1]
    return min(
        forest_distance(one[:-1] + first.children, other) + 1,
        forest_distance(one, other[:-1] + second.children) + 1,
        forest_distance(one[:-1], other[:-1])
        + forest_distance(first.children, second.children)
        + differ(first.label, second.label),
    )


def table_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def test_example_of_zhang_and_shasha() -> None:
    # f(d(a c(b)) e) and f(c(d(a b)) e): delete c below d, insert c above d
    one = Tree("f", (Tree("d", (Tree("a"), Tree("c", (Tree("b"),)))), Tree("e")))
    other = Tree("f", (Tree("c", (Tree("d", (Tree("a"), Tree("b"))),)), Tree("e")))
    assert tree_edit_distance(one, other, differ) == 2


def test_relabelling_costs_what_it_is_said_to_cost() -> None:
    assert tree_edit_distance(Tree("a"), Tree("b"), lambda *_: 0.25) == 0.25
    assert tree_edit_distance(Tree("a"), Tree("b"), lambda *_: 9.0) == 2  # deleting and inserting is cheaper


@given(TREES, TREES)
def test_tree_distance_is_the_recursive_definition(one: Tree[str], other: Tree[str]) -> None:
    assert tree_edit_distance(one, other, differ) == forest_distance((one,), (other,))


@given(TREES, TREES, TREES)
def test_tree_distance_is_a_metric(one: Tree[str], other: Tree[str], third: Tree[str]) -> None:
    between = tree_edit_distance(one, other, differ)
    assert between == tree_edit_distance(other, one, differ)
    assert (between == 0) == (one == other)
    assert between <= tree_edit_distance(one, third, differ) + tree_edit_distance(third, other, differ)


@pytest.mark.parametrize(("one", "other", "distance"), [("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2)])
def test_distances_of_words(one: str, other: str, distance: int) -> None:
    assert levenshtein(one, other) == distance


@given(st.text("abcd", max_size=90), st.text("abcd", max_size=90))
def test_bits_give_the_distance_of_the_table(one: str, other: str) -> None:
    assert levenshtein(one, other) == table_distance(one, other)


def test_similarity_is_one_for_equal_and_empty_sequences() -> None:
    assert similarity(["a", "b"], ["a", "b"]) == similarity("", "") == 1
    assert similarity("ab", "cd") == 0
    assert similarity("abcd", "abxd") == 0.75
