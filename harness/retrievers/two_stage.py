"""DR-RAG's two retrieval stages, batched over questions: Retriever(q), then Retriever(q*_i) with q*_i = Concat(q, d_i)
(Section 2.2.1, Eq. 1).  One batched call per stage."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from common.records import Passage, Question, Ranked
from common.retrieval import Search, plain_search, search_for
from harness.indexing.passage_store import indexed_text
from harness.interfaces import Retriever
from harness.runtime.retriever_tree import check_searched
from harness.selection.algorithms import Rankings


@dataclass
class StageResults:
    """Both stages' results for one question."""

    hits: list[Sequence[Ranked]]  # of q, then of every q*_i

    @cached_property
    def rankings(self) -> Rankings:
        """As ids and scores."""
        first, *second = (tuple(hit.passage.id for hit in hits) for hits in self.hits)
        first_scores, *second_scores = (tuple(hit.score for hit in hits) for hits in self.hits)
        return Rankings(first, tuple(second), first_scores, tuple(second_scores))

    @cached_property
    def passages(self) -> dict[str, Passage]:
        """All of them, by id; the one of the first stage where both found it."""
        return {hit.passage.id: hit.passage for hits in reversed(self.hits) for hit in hits}

    def scores(self, ranking_size: int, concatenations: int, concatenated_size: int) -> dict[str, float]:
        """Score by passage id: for q; for a passage that q did not find, for the first q*_i that found it.

        Args:
            ranking_size: Documents of q that count; the retrieval may have been deeper.
            concatenations: Number of q*_i that count.
            concatenated_size: Documents per q*_i that count.
        """
        first, *concatenated = self.hits
        found: dict[str, float] = {}
        for hits in [first[:ranking_size], *(each[:concatenated_size] for each in concatenated[:concatenations])]:
            for hit in hits:
                found.setdefault(hit.passage.id, hit.score)
        return found


@dataclass(slots=True)
class Retrieval:
    """Both stages' results for a batch of questions, with times."""

    results: list[StageResults]
    first_seconds: float
    second_seconds: float


def concatenate(question: str, passage: Passage, question_weight: int = 1) -> str:
    """q*_i, the question first: encoders truncate at the end.

    Args:
        question: Its text.
        passage: d_i.
        question_weight: How often the question stands before d_i; 1 in the paper. More keep the second search nearer to
            the question, which a long d_i would outweigh.
    """
    return " ".join([*[question] * question_weight, indexed_text(passage)])


def search_twice(
    retriever: Retriever,
    questions: Sequence[Question],
    ranking_size: int,
    second: Mapping[int, tuple[int, int]],
    second_retriever: Retriever | None = None,
    search: Search = plain_search,
    search_again: Search = plain_search,
) -> dict[int, Retrieval]:
    """Retrieve for every question, then for every question concatenated with each of its best documents.

    The first stage is searched once, the second for each weight of the question in q*_i.

    Args:
        retriever: Used for both stages, or for the first.
        questions: The questions.
        ranking_size: Documents per question.
        second: By question weight (see `concatenate`) the number of best documents to concatenate each question with,
            0: no second stage; and of documents per q*_i, d_i and other first-stage documents included.
        second_retriever: Searches with q*_i, on the same corpus; `retriever` when None.
        search: Calls the first retriever.
        search_again: Calls the second one.

    Returns:
        Both stages' results by question weight; each has the time of the first stage.

    Raises:
        SearchFailedError: If a search of one query failed.
    """
    started = time.perf_counter()
    rankings = search_for(retriever, questions, ranking_size, search=search) if questions else []
    check_searched(retriever, [question.text for question in questions], rankings)
    first_seconds = time.perf_counter() - started
    found = {}
    for question_weight, (concatenations, concatenated_size) in second.items():
        started = time.perf_counter()
        queries = [
            (question, concatenate(questions[question].text, hit.passage, question_weight))
            for question, ranking in enumerate(rankings)
            for hit in ranking[:concatenations]
        ]
        again, texts = second_retriever or retriever, [text for _, text in queries]
        asked = [questions[question] for question, _ in queries]
        lists = search_for(again, asked, concatenated_size, texts, search_again) if queries else []
        check_searched(again, texts, lists)
        seconds = time.perf_counter() - started
        own = iter(lists)  # in the order of the questions
        results = [StageResults([ranking, *islice(own, len(ranking[:concatenations]))]) for ranking in rankings]
        found[question_weight] = Retrieval(results, first_seconds, seconds)
    return found
