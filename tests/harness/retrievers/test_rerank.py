"""RE-RAG's estimator behind any retriever: what it scores, what it keeps, in which order."""

from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.records import Ranked
from harness.interfaces import Retriever
from harness.retrievers import rerank as reranking
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.rerank import RerankedRetriever, relevance, rerank
from tests.helpers.rerag_world import corpus, questions
from tests.helpers.table_rewriter import CountingEstimator
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric

PASSAGES = corpus(60)
QUERIES = [question.text for question in questions(PASSAGES)]


def test_a_repeated_pair_is_scored_once_and_chunks_change_nothing(estimator, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = CountingEstimator(estimator)
    asked = [QUERIES[0], QUERIES[1], QUERIES[0]]
    chosen = [PASSAGES[:4], PASSAGES[:4], PASSAGES[2:6]]
    whole = relevance(counted, asked, chosen)
    assert [len(pairs) for pairs in counted.asked] == [4 + 4 + 2]
    assert max(whole[0]) - min(whole[0]) > 0.5  # the scores do decide something
    assert whole[0][2:] == whole[2][:2]
    monkeypatch.setattr(reranking, "_PAIRS_AT_ONCE", 3)
    counted.asked.clear()
    chunked = relevance(counted, asked, chosen)
    assert [len(pairs) for pairs in counted.asked] == [3, 3, 3, 1]
    assert list(chain(*chunked)) == model_close(list(chain(*whole)))


def test_a_long_query_is_judged_by_its_beginning(bm25: Bm25Retriever, serving: Path, estimator) -> None:
    long = " ".join([QUERIES[0], *(passage.text for passage in PASSAGES)])
    (hits,) = RerankedRetriever(bm25, serving, candidates=4, device="cpu").search([long], 4)
    words = long.replace(".", " . ").split()  # one word or mark is one token of this tokenizer
    beginning = " ".join(words[: estimator.encode.max_tokens // 2])
    assert [hit.score for hit in hits] == model_close(estimator.scores([(beginning, hit.passage) for hit in hits]))


def test_equal_scores_keep_the_given_order() -> None:
    found = [Ranked(PASSAGES[n], 1.0) for n in (1, 0, 2)]
    flat = SimpleNamespace(scores=lambda pairs: [0.0] * len(pairs))
    assert [hit.passage for hit in rerank(flat, QUERIES[:1], [found])[0]] == [hit.passage for hit in found]


def test_the_best_of_the_candidates_come_first(bm25: Bm25Retriever, serving: Path, estimator) -> None:
    retriever = RerankedRetriever(bm25, serving, candidates=8, device="cpu")
    assert isinstance(retriever, Retriever)
    for query, hits in zip(QUERIES, retriever.search(QUERIES, 3), strict=True):
        found = [hit.passage for hit in bm25.search([query], 8)[0]]
        expected = sorted(found, key=lambda passage: -estimator.scores([(query, passage)])[0])
        assert [hit.passage.id for hit in hits] == [passage.id for passage in expected[:3]]
        assert all(isinstance(hit, Ranked) for hit in hits)
        assert retriever.search([query], 3)[0] == [Ranked(h.passage, model_close(h.score)) for h in hits]  # alone
    by_rank = [[hit.passage.id for hit in hits] for hits in bm25.search(QUERIES, 3)]
    assert by_rank != [[hit.passage.id for hit in hits] for hits in retriever.search(QUERIES, 3)]


def test_k_may_exceed_the_candidates_and_what_there_is(bm25: Bm25Retriever, serving: Path) -> None:
    retriever = RerankedRetriever(bm25, serving, candidates=2, device="cpu")
    assert [len(hits) for hits in retriever.search([QUERIES[0], "", "zzz"], 5)] == [5, 0, 0]
    (all_found,) = bm25.search(QUERIES[:1], 1000)
    assert len(retriever.search(QUERIES[:1], 1000)[0]) == len(all_found)
    assert retriever.search([], 3) == []
