"""Retrieval code that training and serving share.

The interface of retrievers, reciprocal rank fusion, and batched searches with several queries per question. Standard
library only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, runtime_checkable

from common.gold_segments import documents_of
from common.records import Passage, Question, Ranked, clean


@runtime_checkable
class Retriever(Protocol):
    """Finds passages; the classes are in `harness/retrievers`."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first; fewer if fewer match.

        An empty query returns an empty list. One text alone is searched as a list of it (`common.records.as_texts`).
        `k` must be at least 1.
        """


Search = Callable[[Retriever, Sequence[str], int], list[list[Ranked]]]


def plain_search(retriever: Retriever, queries: Sequence[str], k: int) -> list[list[Ranked]]:
    """`retriever.search`; the memo of an evaluation takes its place."""
    return retriever.search(queries, k)


def search_for(
    retriever: Retriever,
    questions: Sequence[Question],
    k: int,
    queries: Sequence[str] | None = None,
    search: Search = plain_search,
) -> list[list[Ranked]]:
    """The k best passages for each question, each text of several documents once (`without_copies`).

    Without the question itself if it has `exclude_self`. A question searches deeper until k passages are left, or no
    more are found.

    Args:
        retriever: Searches.
        questions: One for each query.
        k: Passages of each query.
        queries: What is searched; the questions' texts when None.
        search: Calls the retriever.
    """
    texts = [question.text for question in questions] if queries is None else queries
    kept: list[list[Ranked]] = [[] for _ in questions]
    rows, depth = [*range(len(questions))], k + any(question.source.exclude_self for question in questions)
    while rows:
        found = zip(rows, search(retriever, [texts[row] for row in rows], depth), strict=True)
        rows = []
        for row, hits in found:
            kept[row] = without_copies(without_itself(questions[row], hits))[:k]
            if len(kept[row]) < k and len(hits) >= depth:
                rows.append(row)
        depth *= 2
    return kept


def without_itself(question: Question, hits: Sequence[Ranked]) -> Sequence[Ranked]:
    """The passages found, without the question itself if it has `exclude_self`."""
    return [hit for hit in hits if not question.is_itself(hit.passage)] if question.source.exclude_self else hits


def without_copies(hits: Sequence[Ranked]) -> list[Ranked]:
    """The passages found, each text once: of equal segments the best one stays, and its `copies` name the others."""
    kept: list[Ranked] = []
    places: dict[tuple[str, str], int] = {}  # text and image of a segment of a document -> its place in `kept`
    for hit in hits:
        own = documents_of(hit.passage)
        if not own:
            kept.append(hit)
            continue
        shown = _cleaned(hit.passage.text), str((hit.passage.metadata or {}).get("image", ""))
        place = places.setdefault(shown, len(kept))
        if place == len(kept):
            kept.append(hit)
            continue
        known = documents_of(kept[place].passage)
        if own[0] == known[0]:  # a document may have a text twice
            kept.append(hit)
        elif further := [name for name in own if name not in known]:
            first = kept[place]
            about = (first.passage.metadata or {}) | {"copies": [*known[1:], *further]}
            kept[place] = replace(first, passage=replace(first.passage, metadata=about))
    return kept


_cleaned = lru_cache(maxsize=2**16)(clean)  # a study looks at the same passages for every question and every row


def share_found(gold: Sequence[Set[str]], found: Iterable[str]) -> float:
    """Recall: the share of the groups of gold passages (`Question.gold_groups`) of which one is found, 0 to 1.

    Args:
        gold: At least one group of ids.
        found: Ids of passages.
    """
    ids = set(found)
    return sum(not group.isdisjoint(ids) for group in gold) / len(gold)


def search_once(
    retriever: Retriever,
    queries: Sequence[Sequence[str]],
    k: int,
    known: Mapping[str, Sequence[Ranked]] | None = None,
    search: Search = plain_search,
) -> dict[str, Sequence[Ranked]]:
    """The passages of each query, from one batched search of the distinct queries in the order of first appearance.

    Args:
        retriever: Searches; it is not called if all queries are known.
        queries: Of each question.
        k: Passages of each query.
        known: Query -> what it finds, at least k passages where there are as many; these queries are not searched
            again.
        search: Calls the retriever.

    Returns:
        Query -> its k best passages, best first.
    """
    known = known or {}
    distinct = list(dict.fromkeys(query for each in queries for query in each))
    new = [query for query in distinct if query not in known]
    hits = {**known, **dict(zip(new, search(retriever, new, k) if new else [], strict=True))}
    return {query: hits[query][:k] for query in distinct}


def search_fused(retriever: Retriever, queries: Sequence[Sequence[str]], k: int) -> list[Sequence[Ranked]]:
    """The passages that the queries of each question find together, best first.

    The lists of several queries are fused by reciprocal ranks.

    Args:
        retriever: Searches.
        queries: Of each question, distinct, at least one; the list of a single query keeps the retriever's scores.
        k: Passages of each query, as in `search_once`.
    """
    hits = search_once(retriever, queries, k)
    lists = [[hits[query] for query in each] for each in queries]
    return [reciprocal_rank_fusion(each, [1.0] * len(each)) if len(each) > 1 else each[0] for each in lists]


def reciprocal_rank_fusion(
    lists: Sequence[Sequence[Ranked]], weights: Sequence[float], rank_constant: int = 60
) -> list[Ranked]:
    """Reciprocal rank fusion (Cormack et al. 2009): uses ranks only, so the lists' scores need not be comparable.

        score(d) = sum over lists i of  w_i / (rank_constant + rank_i(d)),   ranks from 1; 0 for lists without d

    Args:
        lists: One ranked list per retriever or query, best first.
        weights: One per list; all 1 is the published method.
        rank_constant: Greater values reduce the advantage of the first ranks.

    Returns:
        Every passage once, best first; ties in the order of first appearance, list by list.
    """
    scores = [
        [weight / (rank_constant + rank) for rank, _ in enumerate(ranked, 1)]
        for weight, ranked in zip(weights, lists, strict=True)
    ]
    return sum_of_scores(lists, scores)


def sum_of_scores(lists: Sequence[Sequence[Ranked]], weighted: Sequence[Sequence[float]]) -> list[Ranked]:
    """Every passage once, with the sum of its scores in `weighted` over the lists, best first.

    Ties as they appear first.
    """
    passages: dict[str, Passage] = {}
    scores: dict[str, float] = {}
    for ranked, list_scores in zip(lists, weighted, strict=True):
        for hit, score in zip(ranked, list_scores, strict=True):
            passages.setdefault(hit.passage.id, hit.passage)
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + score
    # sorted() is stable and dictionaries keep their order: ties stay in the order of first appearance
    return sorted((Ranked(passages[id_], score) for id_, score in scores.items()), key=lambda hit: -hit.score)
