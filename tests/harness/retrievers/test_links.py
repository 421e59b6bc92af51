"""The link route: its order and scores by hand, its bounds, and its index folder."""

from math import log
from pathlib import Path

import pytest

from common.records import Passage
from harness.retrievers import links as module
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.links import LinkRetriever, build_links
from harness.retrievers.two_stage import concatenate

CORPUS = [
    Passage.of("Alba", "A river that joins Brune and ends at Ilm. It is cold."),
    Passage.of("Brune", "A river of Calder, cold."),
    Passage.of("Calder", "A lake."),
    Passage.of("Ilm", "A bay, like Dorn."),
    Passage.of("Dorn", "Near Ilm, a town by the river Elbe."),
    Passage.of("Elbe", "By Ilm and Dorn, not Calder."),
    Passage.of("Fulda (river)", "Its water is warm."),
    Passage.of("Fulda", "A town on Elbe."),
]


def build(folder: Path, passages: list[Passage] = CORPUS, **options) -> LinkRetriever:
    build_links(passages, folder / "links")
    return LinkRetriever(folder / "links", **options)


def found(retriever: LinkRetriever, query: str, k: int = 10) -> list[str]:
    return [hit.passage.title for hit in retriever.search([query], k)[0]]


def test_named_passages_come_first_then_those_that_they_mention(tmp_path) -> None:
    build(tmp_path)
    index = tmp_path / "links"
    assert found(LinkRetriever(index, hops=0), "Where does the ALBA end?") == ["Alba"]
    assert found(LinkRetriever(index, hops=1), "Where does the ALBA end?") == ["Alba", "Brune", "Ilm"]
    assert found(LinkRetriever(index, hops=2), "Where does the ALBA end?") == ["Alba", "Brune", "Ilm", "Calder", "Dorn"]


def test_scores_by_hand(tmp_path) -> None:
    # N = 8.  Mentions: Alba 0, Brune 1, Ilm 3 (Alba, Dorn, Elbe); one passage has each title
    alba, brune, ilm = build(tmp_path).search(["alba"], 10)[0]
    assert alba.score == pytest.approx(1.0)
    assert brune.score == pytest.approx(0.8 * (1 - log(2) / log(9)))
    assert ilm.score == pytest.approx(0.8 * (1 - log(4) / log(9)))


def test_a_named_passage_keeps_its_score_when_another_one_mentions_it(tmp_path) -> None:
    alba, brune, *_ = build(tmp_path).search(["alba or brune"], 10)[0]
    assert (alba.score, brune.score) == (pytest.approx(1.0), pytest.approx(1 - log(2) / log(9)))


def test_a_passage_that_several_mention_comes_before_one_that_one_mentions(tmp_path) -> None:
    passages = [
        Passage.of("Alba", "meets Zorn and Yver"),
        Passage.of("Brune", "meets Zorn and Xant"),
        *(Passage.of(name, "other") for name in ("Xant", "Yver", "Zorn")),
        Passage.of("Weil", "meets Yver"),  # so that all three have two mentions
        Passage.of("Ulm", "meets Xant"),
    ]
    hits = build(tmp_path, passages).search(["alba or brune"], 10)[0]
    assert [hit.passage.title for hit in hits] == ["Alba", "Brune", "Zorn", "Xant", "Yver"]
    alba, weight = 1.0, 1 - log(3) / log(8)
    assert hits[2].score == pytest.approx((1 - (1 - 0.8 * alba) ** 2) * weight)
    assert hits[3].score == pytest.approx(0.8 * alba * weight)


def test_a_title_without_its_parenthesis_counts_half(tmp_path) -> None:
    fulda, river, elbe = build(tmp_path).search(["how long is fulda"], 10)[0]
    assert (fulda.passage.title, river.passage.title, elbe.passage.title) == ("Fulda", "Fulda (river)", "Elbe")
    assert fulda.score == pytest.approx(1 / (1 + log(2)))  # two passages are called so
    assert river.score == pytest.approx(fulda.score / 2)
    assert found(build(tmp_path), "how long is the Fulda (river)?")[0] == "Fulda (river)"


def test_a_concatenated_query_finds_what_the_passage_mentions(tmp_path) -> None:
    retriever = build(tmp_path, hops=0)
    assert found(retriever, "Which lake is meant?") == []
    assert found(retriever, concatenate("Which lake is meant?", CORPUS[5])) == ["Elbe", "Dorn", "Calder", "Ilm"]


def article(parts: int) -> list[Passage]:
    """An article in parts that share one title; part n has the words w0 to wn."""
    return [Passage.of("Alba", " ".join(f"w{word}" for word in range(part + 1))) for part in range(parts)]


def test_passages_of_one_title_come_in_the_order_of_the_words_that_they_share_with_the_query(tmp_path) -> None:
    retriever = build(tmp_path, [*article(6), Passage.of("Brune", "w3 w4 w5")])
    texts = [hit.passage.text for hit in retriever.search(["alba w2 w4"], 10)[0]]
    assert [len(text.split()) for text in texts] == [5, 6, 3, 4, 1, 2]  # 3, 3, 2, 2, 1, 1 words; ties by place
    assert [hit.passage.text for hit in retriever.search(["alba w2 w4"], 2)[0]] == texts[:2]


def test_a_title_of_many_passages_is_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_OF_A_TITLE", 3)
    assert len(build(tmp_path, article(6)).search(["alba"], 10)[0]) == 3


def test_few_passages_are_read_to_break_ties(tmp_path, monkeypatch) -> None:
    retriever = build(tmp_path, article(6))
    monkeypatch.setattr(module, "_READ", 4)
    assert [len(hit.passage.text.split()) for hit in retriever.search(["alba w5 w3"], 2)[0]] == [4, 1]


def test_only_the_best_of_a_hop_are_followed(tmp_path, monkeypatch) -> None:
    passages = [Passage.of("Alba", "sees Calder"), Passage.of("Brune", "sees Dorn"), Passage.of("Brune", "no")]
    passages += [Passage.of("Calder", "x"), Passage.of("Dorn", "x")]
    assert found(build(tmp_path, passages), "alba brune") == ["Alba", "Brune", "Brune", "Calder", "Dorn"]
    monkeypatch.setattr(module, "_FOLLOWED", 1)
    assert found(build(tmp_path, passages), "alba brune") == ["Alba", "Brune", "Brune", "Calder"]


def test_least_score_leaves_out_common_titles_and_what_they_mention(tmp_path) -> None:
    assert found(build(tmp_path), "the ilm") == ["Ilm", "Dorn"]
    assert found(build(tmp_path, min_score=0.5), "the ilm") == []  # 1 - ln 4 / ln 9 = 0.37


def test_a_query_that_names_no_title_finds_nothing(tmp_path) -> None:
    assert build(tmp_path).search(["", "  ", "no name", "\u200b?!"], 5) == [[], [], [], []]
    assert build(tmp_path).search([], 5) == []


def test_an_empty_list_does_no_harm_in_fusion(tmp_path) -> None:
    build_bm25(CORPUS, tmp_path / "bm25")
    bm25, links = Bm25Retriever(tmp_path / "bm25"), build(tmp_path)
    for options in ({}, {"method": "weighted_score", "scaling": ["min_max", "raw"], "weights": [1, 2]}):
        fused = FusedRetriever([bm25, links], **options)
        warm, alba, nothing = fused.search(["warm water", "alba", "zzz"], 3)
        assert [hit.passage.title for hit in warm] == ["Fulda (river)"]
        assert [hit.passage.title for hit in alba] == ["Alba", "Brune", "Ilm"]
        assert nothing == []


def test_queries_together_and_alone_are_alike(tmp_path) -> None:
    retriever, queries = build(tmp_path), ["alba", "fulda elbe", "ilm", "alba"]
    assert retriever.search(queries, 3) == [retriever.search([query], 3)[0] for query in queries]
