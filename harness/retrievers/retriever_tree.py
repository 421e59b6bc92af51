"""Facts on a retriever and those inside it: lines for reports, failed searches.

Standard library only.
"""

from collections.abc import Iterator, Sequence

from common.errors import SearchFailedError
from common.records import Ranked, clean


def inner(retriever: object) -> Iterator[object]:
    """A retriever and all that it searches through, from the outside inwards; none for None."""
    if retriever is not None:
        yield retriever
        searched = getattr(retriever, "retriever", None)
        further = (getattr(retriever, name, None) for name in ("feedback_retriever", "second_retriever"))
        parts = [*getattr(retriever, "retrievers", ()), searched, *(each for each in further if each is not searched)]
        for part in parts:
            yield from inner(part)


def facts_of(retriever: object) -> list[str]:
    """Lines for a report."""
    return [fact for each in inner(retriever) for fact in getattr(each, "facts", ())]


def failures_of(retriever: object) -> dict[str, str]:
    """Why, by query, the last search with it failed; only retrievers that ask a service have such failures."""
    return {query: why for each in inner(retriever) for query, why in getattr(each, "failures", {}).items()}


def check_searched(retriever: object, queries: Sequence[str], found: Sequence[Sequence[Ranked]]) -> None:
    """Refuse a batch in which a query found nothing because its search failed: an empty list would be an answer.

    Raises:
        SearchFailedError: If there is one; the batch is then done again, question by question.
    """
    failed = failures_of(retriever)
    for query, hits in zip(queries, found, strict=True):
        if not hits and (why := failed.get(clean(query))):
            raise SearchFailedError(f"a search failed: {why}")
