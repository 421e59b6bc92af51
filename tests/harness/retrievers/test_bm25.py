"""BM25 against its formula written out, and the edges of bm25s that this project rounds off."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Passage
from harness.indexing.bm25_search import best
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.helpers.small_world import corpus
from tests.helpers.tolerances import fp32_tolerance

pytestmark = pytest.mark.numeric

QUERIES = ["amber fjord", "kiln", "lagoon lagoon meadow", "north orchard island delta", "harbour zebra"]


def reference(passages: list[Passage], query: str, k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's BM25 of every passage, from the definition."""
    documents = [Counter(re.findall(r"\w\w+", indexed_text(p).lower())) for p in passages]
    mean_length = sum(d.total() for d in documents) / len(documents)
    scores = [0.0] * len(documents)
    for word in query.split():
        holding = sum(word in d for d in documents)
        idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for i, d in enumerate(documents):
            scores[i] += idf * d[word] / (d[word] + k1 * (1 - b + b * d.total() / mean_length))
    return scores


def build(tmp_path: Path, passages: list[Passage], **options) -> Bm25Retriever:
    build_bm25(passages, tmp_path / "index", **options)
    return Bm25Retriever(tmp_path / "index")


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 0.0), (1.2, 1.0)])
def test_scores_are_those_of_the_formula(tmp_path, k1, b) -> None:
    passages = corpus(60)
    retriever = build(tmp_path, passages, k1=k1, b=b)
    unknown = ["", "   ", "zebra quagga", "the of and", "a", "?!", "\u200b"]  # finds nothing
    for query, found in zip(QUERIES + unknown, retriever.search(QUERIES + unknown, 60), strict=True):
        scores = dict(zip(passages, reference(passages, query, k1, b), strict=True))
        expected = {passage: score for passage, score in scores.items() if score > 0}
        assert {hit.passage: pytest.approx(hit.score, rel=fp32_tolerance(64)) for hit in found} == expected
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        assert bool(found) == (query in QUERIES)
    assert retriever.search([], 3) == []


def test_many_queries_at_once_give_what_each_gives_alone_and_read_a_passage_once(tmp_path, monkeypatch) -> None:
    retriever, reads = build(tmp_path, corpus(60)), []
    alone = [retriever.search([query], 60)[0] for query in QUERIES * 2]
    read = PassageStore.__getitem__
    monkeypatch.setattr(PassageStore, "__getitem__", lambda store, place: reads.append(place) or read(store, place))
    assert retriever.search(QUERIES * 2, 60) == alone
    assert len(reads) == len(set(reads)) == len({hit.passage for hits in alone for hit in hits})


def test_equal_scores_come_in_the_order_of_the_corpus(tmp_path) -> None:
    # Same length, same word counts: all of them score alike, and argpartition alone would choose any.
    passages = [Passage(f"{i:03}", "kiln amber", f"number{i:03}") for i in range(100)]
    retriever = build(tmp_path, [*passages, Passage.of("jetty", "kiln kiln")])
    (found,) = retriever.search(["kiln"], 11)
    assert [hit.passage.title for hit in found] == ["jetty", *(f"number{i:03}" for i in range(10))]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30), st.integers(1, 40))
def test_best_is_a_stable_sort_cut_at_k(scores, k) -> None:
    expected = sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: -scores[i])[:k]
    assert best(np.array(scores, dtype=np.float32), k).tolist() == expected


def test_stop_words_count_if_nothing_else_is_known_or_when_told(tmp_path) -> None:
    passages = [Passage.of("", text) for text in ("to be or not to be", "the amber basin", "the the", "?")]
    retriever = build(tmp_path, passages)
    assert retriever.search(["To be, or not to be?"], 3)[0][0].passage == passages[0]
    assert [hit.passage for hit in retriever.search(["the zebra"], 3)[0]] == [passages[2], passages[1]]
    assert [hit.passage for hit in retriever.search(["the amber"], 3)[0]] == [passages[1]]
    asked = ["the amber?", "To be the?", "Is it the quagga?", "quagga"]  # known by more than stop words
    assert [*map(retriever.knows, asked)] == [True, True, False, False]
    build_bm25(passages, tmp_path / "none", stop_words="none")
    assert len(Bm25Retriever(tmp_path / "none").search(["the amber"], 3)[0]) == 2


WRITTEN_OTHERWISE = [
    ("AT&T", "the AT&T company"), ("C#", "in C# alone"), ("C", "in C alone"), ("WiFi", "the Wi-Fi net"),
    ("Cafe\u0301 Muller", "by Café Müller"), ("lm 317t", "a LM-317T part"), ("1000000", "has 1,000,000 of it"),
    ("電源", "電源電圧は5V"), ("電", "電源電圧は5V"), ("दिल्ली", "यह दिल्ली है"), ("โลหะ", "แร่โลหะหนัก"),
    ("fi\u200bord", "a ﬁord"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "text"), WRITTEN_OTHERWISE)
def test_a_query_finds_the_text_that_writes_it_otherwise(tmp_path, query, text) -> None:
    others = ["in C++ alone", "a card at 5", "दल ली", "京都の水"]
    retriever = build(tmp_path, [*(Passage.of("", other) for other in others), Passage.of("", text)])
    assert retriever.search([query], 1)[0][0].passage.text == text
