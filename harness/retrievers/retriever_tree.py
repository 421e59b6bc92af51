"""Facts on a retriever and those inside it: lines for reports, failed searches, unknown words.

Standard library only.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from common.records import Answer, Question


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
    """Note as `unknown_words` which indexes of a system know no word of an answer's question, stop words aside."""
    indexes: list[Any] = [each for each in inner(system) if hasattr(each, "knows")]
    for question, answer in zip(questions, answers, strict=True):
        folders = dict.fromkeys(str(each.folder) for each in indexes if not each.knows(question.text))
        if folders:
            answer.notes["unknown_words"] = f"no word of the question is in {' and '.join(folders)}"
