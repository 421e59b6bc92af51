"""The link route: its order and scores by hand, its bounds, and its index folder."""

from math import log
from pathlib import Path

import pytest

from common.records import Passage
from harness.retrievers import links as module
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


FOUND = [
    # named passages come first, then those that they mention
    ({"hops": 0}, "Where does the ALBA end?", ["Alba"]),
    ({"hops": 1}, "Where does the ALBA end?", ["Alba", "Brune", "Ilm"]),
    ({"hops": 2}, "Where does the ALBA end?", ["Alba", "Brune", "Ilm", "Calder", "Dorn"]),
    ({}, "how long is the Fulda (river)?", ["Fulda (river)"]),
    # a concatenated query finds what the passage mentions
    ({"hops": 0}, "Which lake is meant?", []),
    ({"hops": 0}, concatenate("Which lake is meant?", CORPUS[5]), ["Elbe", "Dorn", "Calder", "Ilm"]),
    # the least score leaves out common titles and what they mention
    ({}, "the ilm", ["Ilm", "Dorn"]),
    ({"min_score": 0.5}, "the ilm", []),  # 1 - ln 4 / ln 9 = 0.37
    *(({}, query, []) for query in ("", "  ", "no name", "\u200b?!")),
]


@pytest.mark.parametrize(("options", "query", "titles"), FOUND)
def test_titles_by_hand(tmp_path, options, query, titles) -> None:
    retriever = build(tmp_path, **options)
    assert found(retriever, query) == titles
    together = retriever.search([query, "fulda elbe", query], 3)  # and alone alike
    assert together == [retriever.search([each], 3)[0] for each in (query, "fulda elbe", query)]
    assert retriever.search([], 5) == []


def test_scores_by_hand(tmp_path) -> None:
    # N = 8.  Mentions: Alba 0, Brune 1, Ilm 3 (Alba, Dorn, Elbe); one passage has each title
    retriever = build(tmp_path)
    alone, named, fulda = (
        {hit.passage.title: hit.score for hit in hits}
        for hits in retriever.search(["alba", "alba or brune", "how long is fulda"], 10)
    )
    once = 1 - log(2) / log(9)
    assert alone == pytest.approx({"Alba": 1.0, "Brune": 0.8 * once, "Ilm": 0.8 * (1 - log(4) / log(9))})
    assert [named["Alba"], named["Brune"]] == pytest.approx([1.0, once])  # a named one keeps it when mentioned
    # two passages are called so; without its parenthesis a title counts half
    assert [*fulda] == ["Fulda", "Fulda (river)", "Elbe"]
    assert [fulda["Fulda"], fulda["Fulda (river)"]] == pytest.approx([1 / (1 + log(2)), 0.5 / (1 + log(2))])


def test_a_passage_that_several_mention_comes_before_one_that_one_mentions(tmp_path) -> None:
    meets = {"Alba": "Zorn and Yver", "Brune": "Zorn and Xant", "Weil": "Yver", "Ulm": "Xant"}  # each is met twice
    passages = [Passage.of(title, f"meets {meets.get(title)}") for title in (*meets, "Xant", "Yver", "Zorn")]
    hits = build(tmp_path, passages).search(["alba or brune"], 10)[0]
    assert [hit.passage.title for hit in hits] == ["Alba", "Brune", "Zorn", "Xant", "Yver"]
    weight = 1 - log(3) / log(8)
    assert [hits[2].score, hits[3].score] == pytest.approx([(1 - (1 - 0.8) ** 2) * weight, 0.8 * weight])


def test_passages_of_one_title_come_in_the_order_of_the_words_that_they_share_with_the_query(tmp_path, monkeypatch):
    """Part n of an article has the words w0 to wn. Many are bounded, and few are read to break ties."""
    parts = [Passage.of("Alba", " ".join(f"w{word}" for word in range(part + 1))) for part in range(6)]
    retriever = build(tmp_path, [*parts, Passage.of("Brune", "w3 w4 w5")])

    def lengths(query: str, k: int) -> list[int]:
        return [len(hit.passage.text.split()) for hit in retriever.search([query], k)[0]]

    assert lengths("alba w2 w4", 10) == [5, 6, 3, 4, 1, 2]  # 3, 3, 2, 2, 1, 1 words; ties by place
    assert lengths("alba w2 w4", 2) == [5, 6]
    monkeypatch.setattr(module, "_READ", 4)
    assert lengths("alba w5 w3", 2) == [4, 1]
    monkeypatch.setattr(module, "_OF_A_TITLE", 3)
    assert len(lengths("alba", 10)) == 3


def test_only_the_best_of_a_hop_are_followed(tmp_path, monkeypatch) -> None:
    rows = [("Alba", "sees Calder"), ("Brune", "sees Dorn"), ("Brune", "no"), ("Calder", "x"), ("Dorn", "x")]
    retriever = build(tmp_path, [Passage.of(*row) for row in rows])
    assert found(retriever, "alba brune") == [title for title, _ in rows]
    monkeypatch.setattr(module, "_FOLLOWED", 1)
    assert found(retriever, "alba brune") == ["Alba", "Brune", "Brune", "Calder"]
