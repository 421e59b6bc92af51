"""Fusion by hand-worked values and by its invariances."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Passage, Ranked
from common.retrieval import reciprocal_rank_fusion
from harness.interfaces import Retriever
from harness.retrievers.fusion import FusedRetriever, weighted_score_fusion

pytestmark = pytest.mark.numeric


def ranked(**scores: float) -> list[Ranked]:
    return [Ranked(Passage(id_, f"text of {id_}"), score) for id_, score in scores.items()]


def ids(hits: Sequence[Ranked]) -> str:
    return "".join(hit.passage.id for hit in hits)


class Listed:
    """A retriever of fixed results per query."""

    def __init__(self, **results: list[Ranked]) -> None:
        self.results, self.asked = results, []

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        self.asked.append(k)
        return [self.results.get(query, [])[:k] for query in queries]


def test_reciprocal_rank_by_hand() -> None:
    # a: 1/61 + 1/63; b: 1/62 + 1/61; c: 1/63; d: 1/62.  b > a > d > c
    fused = reciprocal_rank_fusion([ranked(a=9, b=8, c=7), ranked(b=0.3, d=0.2, a=0.1)], [1, 1])
    assert ids(fused) == "badc"
    assert [hit.score for hit in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62, 1 / 63])


def test_weights_decide() -> None:
    lists = [ranked(a=2, b=1), ranked(b=2, a=1)]
    assert ids(reciprocal_rank_fusion(lists, [1, 2])) == "ba"
    assert ids(reciprocal_rank_fusion(lists, [2, 1])) == "ab"
    assert ids(weighted_score_fusion(lists, [2, 1])) == "ab"


def test_weighted_scores_by_hand() -> None:
    # list 1 scaled: a 1, b 1/2, c 0; list 2 scaled: c 1, b 0.  0.5 and 1 times that: a .5, b .25, c 1
    fused = weighted_score_fusion([ranked(a=10, b=8, c=6), ranked(c=0.9, b=0.1)], [0.5, 1.0])
    assert [(hit.passage.id, hit.score) for hit in fused] == [("c", 1.0), ("a", 0.5), ("b", 0.25)]


def test_raw_scores_by_hand() -> None:
    fused = weighted_score_fusion([ranked(a=10, b=8), ranked(b=4)], [1.0, 0.5], "raw")
    assert [(hit.passage.id, hit.score) for hit in fused] == [("a", 10.0), ("b", 10.0)]


def test_each_list_may_have_its_own_scaling() -> None:
    # list 1 scaled: a 1, b 0; list 2 as it is, twice: b 1, c 0.5
    fused = weighted_score_fusion([ranked(a=10, b=8), ranked(b=0.5, c=0.25)], [1.0, 2.0], ["min_max", "raw"])
    assert [(hit.passage.id, hit.score) for hit in fused] == [("a", 1.0), ("b", 1.0), ("c", 0.5)]


def test_one_candidate_alone_counts_fully() -> None:
    assert weighted_score_fusion([ranked(a=3), []], [1, 1])[0].score == 1.0


def test_ties_stay_in_the_order_of_first_appearance() -> None:
    assert ids(reciprocal_rank_fusion([ranked(d=1), ranked(a=1), ranked(c=1)], [1, 1, 1])) == "dac"


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
    first, second = Listed(q=ranked(a=3, b=2, c=1)), Listed(q=ranked(c=3, b=2), r=ranked(z=1))
    fused = FusedRetriever([first, second], candidates=3)
    assert isinstance(fused, Retriever)
    assert [ids(found) for found in fused.search(["q", "r", ""], 2)] == ["cb", "z", ""]
    assert first.asked == second.asked == [3]
    fused.search(["q"], 7)
    assert first.asked[-1] == 7


def test_one_retriever_alone_keeps_its_order() -> None:
    for method in ("reciprocal_rank", "weighted_score"):
        fused = FusedRetriever([Listed(q=ranked(a=3, b=2, c=1))], method=method)
        assert ids(fused.search(["q"], 3)[0]) == "abc"
