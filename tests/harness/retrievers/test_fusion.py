"""Fusion by hand-worked values and by its invariances."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Passage, Ranked
from common.retrieval import reciprocal_rank_fusion
from harness.interfaces import Retriever
from harness.retrievers.fusion import FusedRetriever, weighted_score_fusion
from tests.helpers.table_rewriter import TableRetriever

pytestmark = pytest.mark.numeric


def ranked(**scores: float) -> list[Ranked]:
    return [Ranked(Passage(id_, f"text of {id_}"), score) for id_, score in scores.items()]


def ids(hits: Sequence[Ranked]) -> str:
    return "".join(hit.passage.id for hit in hits)


WEIGHTED = [
    # list 1 scaled: a 1, b 1/2, c 0; list 2 scaled: c 1, b 0.  0.5 and 1 times that
    ([ranked(a=10, b=8, c=6), ranked(c=0.9, b=0.1)], [0.5, 1.0], "min_max", {"c": 1.0, "a": 0.5, "b": 0.25}),
    ([ranked(a=10, b=8), ranked(b=4)], [1.0, 0.5], "raw", {"a": 10.0, "b": 10.0}),
    # list 1 scaled: a 1, b 0; list 2 as it is, twice
    ([ranked(a=10, b=8), ranked(b=0.5, c=0.25)], [1, 2], ["min_max", "raw"], {"a": 1.0, "b": 1.0, "c": 0.5}),
    ([ranked(a=2, b=1), ranked(b=2, a=1)], [2, 1], "min_max", {"a": 2.0, "b": 1.0}),
    ([ranked(a=3), []], [1, 1], "min_max", {"a": 1.0}),  # one candidate alone counts fully
]


@pytest.mark.parametrize(("lists", "weights", "scaling", "expected"), WEIGHTED)
def test_weighted_scores_by_hand(lists, weights, scaling, expected) -> None:
    fused = weighted_score_fusion(lists, weights, scaling)
    assert [(hit.passage.id, hit.score) for hit in fused] == [*expected.items()]


BY_RANKS = [
    # a: 1/61 + 1/63; b: 1/62 + 1/61; c: 1/63; d: 1/62
    (
        [ranked(a=9, b=8, c=7), ranked(b=0.3, d=0.2, a=0.1)],
        [1, 1],
        {"b": 1 / 62 + 1 / 61, "a": 1 / 61 + 1 / 63, "d": 1 / 62, "c": 1 / 63},
    ),
    ([ranked(a=2, b=1), ranked(b=2, a=1)], [1, 2], {"b": 1 / 62 + 2 / 61, "a": 1 / 61 + 2 / 62}),
    ([ranked(d=1), ranked(a=1), ranked(c=1)], [1] * 3, dict.fromkeys("dac", 1 / 61)),  # ties as they appear first
]


@pytest.mark.parametrize(("lists", "weights", "expected"), BY_RANKS)
def test_reciprocal_ranks_by_hand(lists, weights, expected) -> None:
    fused = reciprocal_rank_fusion(lists, weights)
    assert ids(fused) == "".join(expected)
    assert [hit.score for hit in fused] == pytest.approx([*expected.values()])


RANKINGS = st.lists(st.permutations("abcdef").map(lambda p: p[:4]), min_size=1, max_size=3)


@given(RANKINGS, st.floats(1.5, 100), st.floats(-5, 5))
def test_score_scale_changes_nothing_where_it_must_not(rankings, factor, shift) -> None:
    lists = [ranked(**{id_: 4.0 - i for i, id_ in enumerate(ranking)}) for ranking in rankings]
    moved = [[Ranked(hit.passage, hit.score * factor + shift) for hit in hits] for hits in lists]
    weights = [1.0] * len(lists)
    assert ids(reciprocal_rank_fusion(lists, weights)) == ids(reciprocal_rank_fusion(moved, weights))
    before = {hit.passage.id: hit.score for hit in weighted_score_fusion(lists, weights)}
    after = {hit.passage.id: hit.score for hit in weighted_score_fusion(moved, weights)}
    assert after == pytest.approx(before)


def test_the_retriever_asks_widely_and_returns_k() -> None:
    a, b, c, z = (Passage(id_, "text") for id_ in "abcz")
    first, second = TableRetriever({"q": [a, b, c]}), TableRetriever({"q": [c, b], "r": [z]})
    fused = FusedRetriever([first, second], candidates=3)
    assert isinstance(fused, Retriever)
    assert [ids(found) for found in fused.search(["q", "r", ""], 2)] == ["cb", "z", ""]
    assert first.asked[0][1] == second.asked[0][1] == 3
    fused.search(["q"], 7)
    assert first.asked[-1][1] == 7
    for method in ("reciprocal_rank", "weighted_score"):  # one alone keeps its order
        assert ids(FusedRetriever([first], method=method).search(["q"], 3)[0]) == "abc"
