"""Batched searches: without the question itself, and with several queries per question.

What is searched, what is known already, and the fused lists by hand.
"""

import pytest

from common.records import Passage, Question, Ranked
from common.retrieval import search_for, search_fused, search_once, share_found, without_copies
from tests.helpers.table_rewriter import TableRetriever

A, B, C = (Passage.of(name, f"text of {name}") for name in "ABC")
LISTS = {"q": (A, B, C), "r": (C, B, A), "s": (B, C)}


def test_equal_queries_are_searched_once_and_known_ones_not_at_all() -> None:
    table = TableRetriever(LISTS)
    known = {"r": [Ranked(passage, 9.0) for passage in LISTS["r"]], "t": []}
    found = search_once(table, [("s", "q"), ("r", "s")], 2, known)
    assert table.asked == [(["s", "q"], 2)]
    passages = {query: [hit.passage for hit in hits] for query, hits in found.items()}
    assert passages == {"s": [B, C], "q": [A, B], "r": [C, B]}
    assert search_once(table, [("r",), ("t",)], 2, known) == {"r": known["r"][:2], "t": []}
    assert len(table.asked) == 1  # nothing was left to search


def test_the_lists_of_several_queries_are_fused_and_a_single_one_is_kept() -> None:
    """k = 2: A = 1/61 (q), B = 1/62 + 1/61 (q, s), C = 1/62 (s)."""
    table = TableRetriever(LISTS)
    fused, single, other = search_fused(table, [("q", "s"), ("q",), ("r", "s")], 2)
    assert table.asked == [(["q", "s", "r"], 2)]
    assert [(hit.passage, hit.score) for hit in fused] == [(B, 1 / 62 + 1 / 61), (A, 1 / 61), (C, 1 / 62)]
    assert single == [Ranked(A, 3.0), Ranked(B, 2.0)]
    assert [hit.passage for hit in other] == [C, B]  # 1/61 + 1/62 each; A is third in r's list, beyond k


OWN = [Passage.of(f"Part {number}", f"part {number}", corpus_id="7") for number in range(5)]
COPY = Passage.of("Copy", "where  is it?", corpus_id="9")
OTHERS = [Passage.of(name, f"text of {name}", corpus_id=own) for name, own in (("X", ""), ("Y", "77"), ("Z", "8"))]
ORDER = (*OWN[:4], COPY, OTHERS[0], OWN[4], *OTHERS[1:])


def test_a_question_that_is_to_be_left_out_searches_until_k_others_are_found() -> None:
    question = Question("7", "where is it?")
    for k, depths, found in ((1, [2, 4, 8], "X"), (2, [3, 6, 12], "XY"), (3, [4, 8, 16], "XYZ"), (9, [10], "XYZ")):
        table = TableRetriever({"where is it?": ORDER})
        assert [hit.passage for hit in search_for(table, [question], k)[0]] == [*ORDER[:k]]
        (hits,) = search_for(table, [question.excluding_self()], k)
        assert "".join(hit.passage.title for hit in hits) == found
        assert [depth for _, depth in table.asked] == [k, *depths]


def test_each_question_leaves_out_itself_alone() -> None:
    table = TableRetriever({"r": (*OTHERS, A), "q": (C, *OTHERS)})
    asked = [Question("8", "one").excluding_self(), Question("77", "two").excluding_self(), Question("8", "three")]
    found = search_for(table, asked, 3, ["r", "r", "r"])
    assert ["".join(hit.passage.title for hit in hits) for hits in found] == ["XYA", "XZA", "XYZ"]
    assert table.asked == [(["r", "r", "r"], 4)]


def test_shipped_passages_leave_out_the_question_with_its_score() -> None:
    gold, shipped = (OWN[0].id, B.id), (A, OWN[0], B, COPY)
    question = Question("7", "where is it?", passages=shipped, support=gold, scores=(1, 2, 3, 4))
    left = question.excluding_self()
    assert (left.passages, left.scores, left.gold_passages, left.support) == ((A, B), (1, 3), (B,), question.support)


def test_a_group_is_found_when_one_of_it_is() -> None:
    assert share_found([{"a", "b"}, {"c"}, {"d"}], ["b", "a", "c", "z"]) == pytest.approx(2 / 3)


def segment(document: str, text: str, heading: str = "1 Safety", **more: object) -> Passage:
    about = {"document": document, "headings": [heading], **more}
    return Passage(f"{document} {heading} {text}", text, f"{document} > {heading}", metadata=about)


def test_a_text_of_several_documents_is_found_once_with_the_names_of_the_others() -> None:
    """Not folded: a text that one document has twice, passages of no document, and another image."""
    a, b, c = segment("a", "Keep  dry."), segment("b", "Keep dry.", copies=["b2"]), segment("c", "Keep dry.", "2 Use")
    own, other = segment("a", "Keep dry.", "9 Care"), segment("c", "Dry it.")
    plain = [Passage.of(title, "Keep dry.") for title in "xy"]
    image = segment("b", "Keep dry.", "3 Figures", image="1.png")
    order = (a, b, own, c, b, *plain, other, image)
    kept = without_copies([Ranked(passage, -place) for place, passage in enumerate(order)])
    assert [hit.passage for hit in kept] == [a, own, *plain, other, image]
    assert [hit.score for hit in kept] == [0, -2, -5, -6, -7, -8]
    assert [(hit.passage.metadata or {}).get("copies") for hit in kept] == [["b", "b2", "c"], *[None] * 5]
    table = TableRetriever({"q": order})
    assert [hit.passage for hit in search_for(table, [Question("1", "q")], 4)[0]] == [a, own, *plain]
    assert [depth for _, depth in table.asked] == [4, 8]
    assert a.metadata == segment("a", "Keep  dry.").metadata  # what the index keeps is not changed
