"""RM3 worked out by hand, and searched with BM25 and with vectors."""

import math
from pathlib import Path

import pytest

from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.rm3 import Rm3Retriever, interpolated, relevance_model
from tests.helpers.river_corpus import TEXTS, write_index
from tests.helpers.small_world import WORDS, corpus
from tests.helpers.table_rewriter import CountingRetriever

PASSAGES = corpus(200, longest=12)
QUERIES = ["amber basin", "cedar cedar fjord", "jetty", "unknown"]


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    folder = tmp_path_factory.mktemp("rm3") / "bm25"
    build_bm25(PASSAGES, folder)
    return Bm25Retriever(folder)


def test_by_hand() -> None:
    """Two passages with scores 3 and 1: P(d) = 3/4, 1/4."""
    documents = [["jaws", "shark", "shark", "sea"], ["jaws", "film"]]
    # jaws 3/4*1/4 + 1/4*1/2 = 5/16, shark 3/4*2/4 = 6/16, sea 3/16, film 1/4*1/2 = 2/16
    model = relevance_model(documents, [3.0, 1.0], 3)
    assert list(model) == ["shark", "jaws", "sea"]
    assert model == pytest.approx({"shark": 6 / 14, "jaws": 5 / 14, "sea": 3 / 14})
    assert relevance_model(documents, [3.0, 1.0], 2, excluded={"shark"}) == pytest.approx({"jaws": 5 / 8, "sea": 3 / 8})
    mixed = interpolated(["jaws", "jaws", "born"], model, 0.5)
    assert mixed == pytest.approx({"jaws": 1 / 3 + 5 / 28, "born": 1 / 6, "shark": 6 / 28, "sea": 3 / 28})
    assert math.fsum(mixed.values()) == pytest.approx(1)
    assert interpolated(["a"], {}, 0.5) == {"a": 1.0}
    assert interpolated([], {"b": 1.0}, 0.5) == {"b": 1.0}
    assert relevance_model([], [], 3) == {}
    assert relevance_model([["a"], ["b"]], [0.0, -1.0], 1) == {"a": 1.0}  # no score above 0: equal weights, a before b
    assert relevance_model([["a"], ["b"]], [-1.0, 2.0], 2) == {"b": 1.0}


def test_the_question_s_own_words_alone_rank_as_before(bm25: Bm25Retriever) -> None:
    """lambda = 1: the same order, scores divided by the number of words."""
    assert isinstance(Rm3Retriever(bm25), Retriever)
    plain, ours = bm25.search(QUERIES[:2], 6), Rm3Retriever(bm25, original_weight=1.0).search(QUERIES[:2], 6)
    for one, other, count in zip(plain, ours, (2, 3), strict=True):
        assert [hit.score / count for hit in one] == pytest.approx([hit.score for hit in other], rel=1e-5)


def test_feedback_finds_what_the_question_s_words_do_not(tmp_path: Path) -> None:
    rivers = Bm25Retriever(write_index(tmp_path))
    assert "Brune" not in [hit.passage.title for hit in rivers.search(["alba river"], 9)[0]]
    found = [hit.passage.title for hit in Rm3Retriever(rivers, passages=1, common=1.0).search(["alba river"], 9)[0]]
    assert "Brune" in found  # by the word "brune" of Alba's passage
    assert rivers.shares(["alba", "mountain", "unknown"]) == [2 / len(TEXTS), 2 / len(TEXTS), 0]


def test_common_words_are_not_chosen(bm25: Bm25Retriever) -> None:
    shares = dict(zip(WORDS, bm25.shares(WORDS), strict=True))
    limit = sorted(shares.values())[5]
    for weights in Rm3Retriever(bm25, original_weight=0.0, common=limit).expanded(QUERIES[:3]):
        assert weights
        assert {word for word, weight in weights.items() if weight > 0} <= {w for w in WORDS if shares[w] <= limit}


def test_another_retriever_gets_the_words_after_the_question(bm25: Bm25Retriever, tmp_path: Path, encoder) -> None:
    build_dense(PASSAGES, tmp_path / "dense", encoder)
    counting = CountingRetriever(DenseRetriever(tmp_path / "dense", "cpu"))
    retriever = Rm3Retriever(counting, bm25, passages=3, terms=2, common=1.0)
    (hits, nothing) = retriever.search(["amber basin", "unknown"], 4)
    assert (len(hits), len(nothing)) == (4, 4)
    (weights, _) = retriever.expanded(["amber basin", "unknown"])
    added = [word for word in sorted(weights, key=lambda word: -weights[word]) if word not in ("amber", "basin")]
    (((first, second), depth),) = counting.asked
    assert first.split()[:2] == ["amber", "basin"]
    assert (set(first.split()[2:]), second, depth) == (set(added), "unknown", 4)
    assert retriever.search([], 3) == []
