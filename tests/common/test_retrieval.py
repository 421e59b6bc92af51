"""Batched searches with several queries per question.

What is searched, what is known already, and the fused lists by hand.
"""

from common.records import Passage, Ranked
from common.retrieval import search_fused, search_once
from tests.helpers.table_rewriter import TableRetriever

A, B, C = (Passage.of(name, f"text of {name}") for name in "ABC")
LISTS = {"q": (A, B, C), "r": (C, B, A), "s": (B, C)}


def test_equal_queries_are_searched_once_and_known_ones_not_at_all() -> None:
    table = TableRetriever(LISTS)
    known = {"r": [Ranked(passage, 9.0) for passage in LISTS["r"]], "t": []}
    found = search_once(table, [("s", "q"), ("r", "s")], 2, known)
    assert table.asked == [(["s", "q"], 2)]
    assert {query: [hit.passage for hit in hits] for query, hits in found.items()} == {
        "s": [B, C], "q": [A, B], "r": [C, B],
    }  # fmt: skip
    assert search_once(table, [("r",), ("t",)], 2, known) == {"r": known["r"][:2], "t": []}
    assert len(table.asked) == 1  # nothing was left to search


def test_the_lists_of_several_queries_are_fused_and_a_single_one_is_kept() -> None:
    """k = 2: A = 1/61 (q), B = 1/62 + 1/61 (q, s), C = 1/62 (s)."""
    table = TableRetriever(LISTS)
    fused, single, other = search_fused(table, [("q", "s"), ("q",), ("r", "s")], 2, {"r": table.search(["r"], 3)[0]})
    assert table.asked[1:] == [(["q", "s"], 2)]
    assert [(hit.passage, hit.score) for hit in fused] == [(B, 1 / 62 + 1 / 61), (A, 1 / 61), (C, 1 / 62)]
    assert single == [Ranked(A, 3.0), Ranked(B, 2.0)]
    assert [hit.passage for hit in other] == [C, B]  # 1/61 + 1/62 each; A is third in the known list, beyond k
