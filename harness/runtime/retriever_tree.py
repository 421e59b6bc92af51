"""Facts on a retriever and those inside it: lines for reports, failed searches, unknown words.

Standard library only.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from common.errors import SearchFailedError
from common.records import Answer, Question, Ranked, clean


@runtime_checkable
class KnowsWords(Protocol):
    """An index of words."""

    folder: Path

    def knows(self, text: str) -> bool:
        """Whether a passage has a word of the text."""


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


def note_unknown_words(system: object, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
    """Note as `unknown_words` which indexes of a system know no word of a question and its turns, stop words aside."""
    indexes = [each for each in inner(system) if isinstance(each, KnowsWords)]
    for question, answer in zip(questions, answers, strict=True):
        asked = " ".join((*question.history, question.text))
        if folders := dict.fromkeys(str(each.folder) for each in indexes if not each.knows(asked)):
            answer.notes["unknown_words"] = f"no word of the question is in {' and '.join(folders)}"


def check_searched(retriever: object, queries: Sequence[str], found: Sequence[Sequence[Ranked]]) -> None:
    """Refuse a batch in which a query found nothing because its search failed: an empty list would be an answer.

    Raises:
        SearchFailedError: If there is one; the batch is then done again, question by question.
    """
    failed = failures_of(retriever)
    for query, hits in zip(queries, found, strict=True):
        if not hits and (why := failed.get(clean(query))):
            raise SearchFailedError(f"a search failed: {why}")
