"""One text alone is as a list of it, wherever texts or questions are taken: a string is a sequence of characters."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from common.records import Passage
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.keywords import KeywordRetriever, build_keywords
from harness.retrievers.links import LinkRetriever, build_links
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.retrievers.multi_route import MultiRouteRetriever
from harness.retrievers.rerank import RerankedRetriever
from harness.retrievers.rm3 import Rm3Retriever
from harness.rewriters.file import FileRewriter
from tests.helpers.word_scorer import WordScorer

TEXT = "amber Delta 300"
PASSAGES = [Passage.of(f"Delta {number}", f"amber Delta {number} kiln") for number in (300, 400, 500)]


@pytest.fixture(scope="module")
def retrievers(tmp_path_factory: pytest.TempPathFactory, encoder) -> Mapping[str, Retriever]:
    folder = tmp_path_factory.mktemp("one_text")
    build_bm25(PASSAGES, folder / "bm25")
    build_dense(PASSAGES, folder / "dense", encoder)
    build_keywords(PASSAGES, folder / "keywords", max_share=0.5)
    build_links(PASSAGES, folder / "links")
    bm25, keywords = Bm25Retriever(folder / "bm25"), KeywordRetriever(folder / "keywords")
    dense = DenseRetriever(folder / "dense", "cpu", encoder=encoder.name)
    reranked = RerankedRetriever(bm25, folder)
    reranked.estimator = WordScorer()  # type: ignore[assignment]
    return {
        "bm25": bm25, "dense": dense, "keywords": keywords, "links": LinkRetriever(folder / "links"),
        "fused": FusedRetriever([bm25, dense]), "rm3": Rm3Retriever(bm25), "reranked": reranked,
        "routes": MultiRouteRetriever(dense, bm25, keywords), "queries": MultiQueryRetriever(bm25, fusion="rrf"),
    }  # fmt: skip


def test_every_retriever_searches_one_text(retrievers) -> None:
    for retriever in retrievers.values():
        one, several = retriever.search(TEXT, 2), retriever.search([TEXT, "kiln"], 2)
        assert len(one) == 1
        assert one[0] == several[0] != []


def test_encoders_words_and_rewriters_take_one_text(retrievers, encoder, tmp_path: Path) -> None:
    for encode in (encoder.encode_queries, encoder.encode_passages):
        assert np.array_equal(encode(TEXT), encode([TEXT]))
    assert retrievers["bm25"].shares("amber") == [1.0]
    assert retrievers["rm3"].expanded(TEXT) == retrievers["rm3"].expanded([TEXT])
    row = {"question": TEXT, "strategy": "gqr", "rewrite": "amber delta", "history": []}
    (tmp_path / "rewrites.jsonl").write_text(json.dumps(row) + "\n")
    (made,) = FileRewriter(tmp_path / "rewrites.jsonl").rewrite(TEXT, "gqr")  # type: ignore[arg-type]
    assert made.queries == {"gqr": ("amber delta",)}
