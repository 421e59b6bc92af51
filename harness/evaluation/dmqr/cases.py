"""What each query of a question found, as in DMQR-RAG's Figure 5.

For every question in the page, for two in the report.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.records import Question
from harness.evaluation.dmqr.scores import Relevance
from harness.evaluation.page import Case
from harness.retrievers.multi_query import MultiQueryHits, QueryHits

COLUMNS = ("made by", "query", "found", "alone", "relevant, with their ranks")
_TITLES = 3  # passages named of each query in the report


def query_case(number: int, hits: MultiQueryHits, relevance: Relevance) -> Case:
    """One row per query of a question."""
    rows = []
    for place, search in enumerate(hits.searches):
        relevant = ", ".join(f"{title} ({rank})" for rank, title in _relevant(number, search, relevance))
        rows.append(
            ("/".join(search.made_by), search.query, str(len(search.hits)), str(len(hits.alone(place))), relevant)
        )
    fallbacks = hits.rewrites.fallbacks if hits.rewrites else {}
    note = "; ".join(f"{name}: the question itself, because {why}" for name, why in fallbacks.items())
    return Case("What each query found (Figure 5)", COLUMNS, tuple(rows), note)


def chosen_cases(
    questions: Sequence[Question],
    hits: Sequence[MultiQueryHits],
    relevance: Relevance,
    own_N: NDArray[np.float64],
    oqr_N: NDArray[np.float64],
) -> str:
    """A complex and a simple question in words.

    The longest and the shortest (words) that the system hits and OQR misses.

    Where there is no such question: the longest and the shortest of all.

    Args:
        questions: All of them.
        hits: What the system's queries found, one per question.
        relevance: The rule.
        own_N: The system's hits, 0 or 1.
        oqr_N: Those of OQR.
    """
    gained = [number for number in range(len(questions)) if own_N[number] > oqr_N[number]] or [*range(len(questions))]
    lengths: Mapping[int, int] = {number: len(questions[number].text.split()) for number in gained}
    longest, shortest = max(gained, key=lambda n: lengths[n]), min(gained, key=lambda n: lengths[n])
    parts = [f"A complex query (Figure 5): {_told(longest, questions[longest], hits[longest], relevance)}"]
    if shortest != longest:
        parts.append(f"A simple query: {_told(shortest, questions[shortest], hits[shortest], relevance)}")
    return "\n\n".join(parts)


def _told(number: int, question: Question, hits: MultiQueryHits, relevance: Relevance) -> str:
    told = []
    for place, search in enumerate(hits.searches):
        relevant = [f"{title} (rank {rank})" for rank, title in _relevant(number, search, relevance)]
        names = f": {', '.join(relevant[:_TITLES])}" if relevant else ""
        told.append(
            f'{"/".join(search.made_by)}: "{search.query}" found {len(search.hits)} passages, {len(hits.alone(place))} '
            "of them alone, "
            f"{len(relevant)} relevant{names}."
        )
    return f"{question.id}. {' '.join(told)}"


def _relevant(number: int, search: QueryHits, relevance: Relevance) -> list[tuple[int, str]]:
    """Rank and title of the relevant passages that a query found."""
    return [
        (rank, hit.passage.title or hit.passage.text[:60])
        for rank, hit in enumerate(search.hits, 1)
        if relevance.relevant(number, hit.passage)
    ]
