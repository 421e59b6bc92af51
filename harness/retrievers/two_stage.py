"""DR-RAG's two retrieval stages for many questions at once: Retriever(q), then Retriever(q*_i) with q*_i = Concat(q, d_i)
(Section 2.2.1, Eq. 1).  One batched call each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from common.records import Passage, Ranked
from harness.indexing.passage_store import indexed_text
from harness.interfaces import Retriever
from harness.selection.algorithms import Candidates


@dataclass(slots=True)
class StageResults:
    """What both stages found for one question."""

    candidates: Candidates
    passages: dict[str, Passage] = field(default_factory=dict)  # all of `candidates`, by id
    scores: dict[str, float] = field(default_factory=dict)  # under q, or else under the first q*_i that found it


@dataclass(slots=True)
class Retrieval:
    """Both stages for a batch of questions, and what they cost."""

    found: list[StageResults]
    first_seconds: float
    second_seconds: float
    concatenations: int  # q*_i searched for, over all questions


def concatenate(question: str, passage: Passage) -> str:
    """q*_i: the question first, because encoders cut what is too long at its end."""
    return f"{question} {indexed_text(passage)}"


def search_twice(
    retriever: Retriever, questions: Sequence[str], ranking_size: int, concatenations: int, concatenated_size: int
) -> Retrieval:
    """Retrieve for every question, then for every question joined with each of its best documents.

    Args:
        retriever: Serves both stages.
        questions: Their texts.
        ranking_size: Documents per question.
        concatenations: Best documents to join each question with; 0 leaves the second stage out.
        concatenated_size: Documents per q*_i, d_i itself and the first stage's others included.
    """
    started = time.perf_counter()
    rankings = retriever.search(questions, ranking_size) if questions else []
    middle = time.perf_counter()
    joined = [
        (question, concatenate(questions[question], hit.passage))
        for question, ranking in enumerate(rankings)
        for hit in ranking[:concatenations]
    ]
    lists = retriever.search([text for _, text in joined], concatenated_size) if joined else []
    ended = time.perf_counter()

    per_question: list[list[list[Ranked]]] = [[] for _ in questions]
    for (question, _), ranked in zip(joined, lists, strict=True):
        per_question[question].append(ranked)
    found = [_found(ranking, second) for ranking, second in zip(rankings, per_question, strict=True)]
    return Retrieval(found, middle - started, ended - middle, len(joined))


def _found(ranking: Sequence[Ranked], concatenated: Sequence[Sequence[Ranked]]) -> StageResults:
    """One question's results as ids, with a table of passages and scores."""
    ids = [tuple(hit.passage.id for hit in hits) for hits in concatenated]
    found = StageResults(Candidates(tuple(hit.passage.id for hit in ranking), tuple(ids)))
    for hits in [ranking, *concatenated]:
        for hit in hits:
            found.passages.setdefault(hit.passage.id, hit.passage)
            found.scores.setdefault(hit.passage.id, hit.score)
    return found
