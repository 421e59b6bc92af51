"""Multi-query retrieval against references computed query by query.

Union, reranking, reciprocal ranks, one batched search.
"""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.records import Passage, Question, Ranked
from common.retrieval import reciprocal_rank_fusion
from common.rewrites import Rewrites
from harness.interfaces import Retriever
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryHits, MultiQueryRetriever, QueryHits, union
from harness.retrievers.rerank import RerankedRetriever
from tests.conftest import NAMES
from tests.helpers.rerag_world import corpus, questions
from tests.helpers.table_rewriter import CountingEstimator, CountingRetriever, TableRewriter
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric

PASSAGES = corpus(60)
ASKED = questions(PASSAGES)
STRATEGIES = ("gqr", "kwr", "par", "cce")
chance = random.Random(4)
TABLE = {
    each.text: {name: [f"{chance.choice(NAMES)} director film {chance.choice(NAMES)}"] for name in STRATEGIES}
    for each in ASKED
}
TABLE[ASKED[0].text]["kwr"] = [ASKED[0].text]  # the question itself
TABLE[ASKED[1].text]["cce"] = TABLE[ASKED[1].text]["gqr"]  # two strategies make one query
TABLE[ASKED[2].text]["par"] = TABLE[ASKED[3].text]["par"]  # two questions have one query
del TABLE[ASKED[4].text]["kwr"]  # falls back


def queries_of(question: Question) -> list[str]:
    made = [query for name in STRATEGIES for query in TABLE[question.text].get(name, [question.text])]
    return list(dict.fromkeys([question.text, *made]))


def test_all_queries_of_all_questions_are_one_search_and_every_pair_is_scored_once(bm25, estimator) -> None:
    counting, counted, rewriter = CountingRetriever(bm25), CountingEstimator(estimator), TableRewriter(TABLE)
    retriever = MultiQueryRetriever(counting, rewriter, per_query=6, scorer=counted)
    assert isinstance(retriever, Retriever)
    batch = retriever.find(ASKED, 5)
    assert rewriter.asked == [[each.text for each in ASKED]]
    ((searched, depth),) = counting.asked
    assert (sorted(searched), depth) == (sorted({query for each in ASKED for query in queries_of(each)}), 6)
    (pairs,) = counted.asked
    keys = [(question, passage.id) for question, passage in pairs]
    lists = ((each.text, hits) for each in ASKED for hits in bm25.search(queries_of(each), 6))
    assert sorted(keys) == sorted({(text, hit.passage.id) for text, hits in lists for hit in hits})
    assert sum(found.scored for found in batch.results) == len(keys)
    assert batch.seconds.keys() == {"rewriting", "retrieval", "reranking"}


@pytest.mark.parametrize("judged_by", ["question", "kwr"])
def test_the_best_of_the_union_by_the_scorer(bm25: Bm25Retriever, estimator, judged_by: str) -> None:
    """Judged by a rewrite where there is one."""
    retriever = MultiQueryRetriever(bm25, TableRewriter(TABLE), STRATEGIES, 6, scorer=estimator, judged_by=judged_by)
    for question, found in zip(ASKED, retriever.find(ASKED, 5).results, strict=True):
        queries = queries_of(question)
        assert [search.query for search in found.searches] == queries
        assert [list(search.hits) for search in found.searches] == bm25.search(queries, 6)
        pool = {hit.passage.id: hit.passage for hits in bm25.search(queries, 6) for hit in hits}
        assert [passage.id for passage in found.union] == list(pool)
        (judge,) = TABLE[question.text].get(judged_by, [question.text])
        scores = {id_: estimator.scores([(judge, passage)])[0] for id_, passage in pool.items()}
        assert [hit.passage.id for hit in found.ranked] == sorted(pool, key=lambda id_: -scores[id_])[:5]
        assert [hit.score for hit in found.ranked] == model_close([scores[hit.passage.id] for hit in found.ranked])


def test_reciprocal_ranks_summed_query_by_query(bm25: Bm25Retriever) -> None:
    results = MultiQueryRetriever(bm25, TableRewriter(TABLE), per_query=6, fusion="rrf").find(ASKED, 5).results
    for question, found in zip(ASKED, results, strict=True):
        lists = bm25.search(queries_of(question), 6)
        assert [*found.ranked] == reciprocal_rank_fusion(lists, [1.0] * len(lists))[:5]
        assert found.scored == 0
    made = [results[0].searches[0].made_by, results[1].searches[1].made_by, results[4].searches[0].made_by]
    assert made == [("question", "kwr"), ("gqr", "cce"), ("question", "kwr")]
    assert results[4].rewrites.fallbacks == {"kwr": "it is missing"}
    (sharper,) = MultiQueryRetriever(bm25, fusion="rrf", rank_constant=1).search([ASKED[0].text], 2)
    assert [hit.score for hit in sharper] == pytest.approx([1 / 2, 1 / 3])


def test_without_a_rewriter_it_is_the_retriever_reranked_at_its_depth(bm25: Bm25Retriever, serving: Path) -> None:
    ours = MultiQueryRetriever(bm25, per_query=12, serving=serving, device="cpu", original=False)
    texts = [each.text for each in ASKED]
    assert ours.search(texts, 4) == RerankedRetriever(bm25, serving, 12, "cpu").search(texts, 4)
    plain, inner = (each.search(texts, 4) for each in (MultiQueryRetriever(bm25, per_query=12, fusion="rrf"), bm25))
    assert [[h.passage for h in hits] for hits in plain] == [[h.passage for h in hits] for hits in inner]


def test_a_rewrite_in_the_question_s_place(bm25: Bm25Retriever) -> None:
    rewrite, counting = "name3 is the director of the film name5", CountingRetriever(bm25)
    table = TableRewriter({ASKED[0].text: {"hyde": [rewrite]}})
    alone = MultiQueryRetriever(counting, table, ("hyde",), 10, "rrf", original=False)
    results = alone.find(ASKED[:2], 5).results
    assert counting.asked == [([rewrite, ASKED[1].text], 10)]
    # the second fell back to the question
    assert [[search.made_by for search in each.searches] for each in results] == [[("hyde",)], [("hyde",)]]
    nothing = SimpleNamespace(rewrite=lambda questions, strategies: [Rewrites({}) for _ in questions])
    (found,) = MultiQueryRetriever(bm25, nothing, STRATEGIES, 10, "rrf", original=False).find(ASKED[:1], 5).results
    assert [(search.query, search.made_by) for search in found.searches] == [(ASKED[0].text, ("question",))]


def test_as_a_retriever_it_asks_the_rewriter_once(bm25: Bm25Retriever, estimator) -> None:
    rewriter, text = TableRewriter(TABLE), ASKED[0].text
    retriever = MultiQueryRetriever(bm25, rewriter, per_query=2, scorer=estimator)
    first, empty, again, unknown = retriever.search([text, " ", f" {text}\n", "zzz"], 9)
    assert (len(first), empty, unknown) == (9, [], [])
    assert again == first
    assert rewriter.asked == [[text, "zzz"]]
    assert retriever.search([], 3) == []


lists = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=8), min_size=1, max_size=5)


@given(lists)
def test_the_union_holds_every_passage_once_in_order_of_appearance(numbers: list[list[int]]) -> None:
    hits = [[Ranked(Passage(str(n), "text", ""), 1.0) for n in each] for each in numbers]
    assert [p.id for p in union(hits)] == list(dict.fromkeys(str(n) for each in numbers for n in each))
    found = MultiQueryHits(tuple(QueryHits(str(i), ("x",), tuple(each)) for i, each in enumerate(hits)), None, (), 0)
    for passage in found.union:
        own = int(passage.id)
        ranks = {place: each.index(own) + 1 for place, each in enumerate(numbers) if own in each}
        assert found.ranks(passage.id) == ranks
        alone = [place for place in range(len(hits)) if passage in found.alone(place)]
        assert alone == ([*ranks] if len(ranks) == 1 else [])
