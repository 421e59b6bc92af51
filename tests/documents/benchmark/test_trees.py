"""Edit distances of trees and sequences: hand-worked, against brute force, and what every distance has."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from tests.documents.benchmark.trees import Tree, levenshtein, similarity, tree_edit_distance

TREES = st.recursive(
    st.sampled_from("abc").map(Tree),
    lambda children: st.builds(Tree, st.sampled_from("abc"), st.lists(children, max_size=3).map(tuple)),
    max_leaves=5,
)


def differ(one: str, other: str) -> float:
    return float(one != other)


@cache
def forest_distance(one: tuple[Tree, ...], other: tuple[Tree, ...]) -> float:
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


def test_trees_by_hand() -> None:
    """The example of Zhang and Shasha: f(d(a c(b)) e) and f(c(d(a b)) e); delete c below d, insert c above d."""
    one = Tree("f", (Tree("d", (Tree("a"), Tree("c", (Tree("b"),)))), Tree("e")))
    other = Tree("f", (Tree("c", (Tree("d", (Tree("a"), Tree("b"))),)), Tree("e")))
    assert tree_edit_distance(one, other, differ) == 2
    assert tree_edit_distance(Tree("a"), Tree("b"), lambda *_: 0.25) == 0.25
    assert tree_edit_distance(Tree("a"), Tree("b"), lambda *_: 9.0) == 2  # deleting and inserting is cheaper


@given(TREES, TREES, TREES)
def test_tree_distance_is_the_recursive_definition_and_a_metric(one: Tree, other: Tree, third: Tree) -> None:
    between = tree_edit_distance(one, other, differ)
    assert between == forest_distance((one,), (other,)) == tree_edit_distance(other, one, differ)
    assert (between == 0) == (one == other)
    assert between <= tree_edit_distance(one, third, differ) + tree_edit_distance(third, other, differ)


@given(st.text("abcd", max_size=90), st.text("abcd", max_size=90))
def test_bits_give_the_distance_of_the_table(one: str, other: str) -> None:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    assert levenshtein(one, other) == row[-1]


def test_similarity_of_sequences_by_hand() -> None:
    assert [levenshtein(*pair) for pair in (("kitten", "sitting"), ("", "abc"), ("flaw", "lawn"))] == [3, 3, 2]
    assert similarity(["a", "b"], ["a", "b"]) == similarity("", "") == 1
    assert (similarity("ab", "cd"), similarity("abcd", "abxd")) == (0, 0.75)
