"""What a retriever says of the retrievers that it searches through: facts for reports, and searches that failed.

Standard library only.
"""

from collections.abc import Iterator


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
