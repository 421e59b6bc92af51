"""Questions that fail apart from the others: these are answered, and the answer to one that fails says why.

A service that is down, a file that is missing or corrupt, short memory and an error of the program end all work.
"""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from common.errors import (
    ArtifactError,
    DataError,
    MemoryShortError,
    MissingInputError,
    RefusedError,
    SearchFailedError,
    SomeFailedError,
    UnavailableError,
    UserError,
)
from common.records import Answer, Asked, Question, clean
from harness.runtime.long_questions import CUT, with_cut_notes
from harness.runtime.retriever_tree import note_unknown_words

ERROR = "error"  # note of an answer: why there is none
_DOWN = (UnavailableError, RefusedError)  # a service, after its client's own retries
_OF_ALL = (MissingInputError, ArtifactError, MemoryShortError, *_DOWN)  # whatever was asked
_SHOWN = 3  # failures that a line names
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Failure:
    """In the place of an item's result."""

    error: Exception

    @property
    def reason(self) -> str:
        """The error in one line."""
        return " ".join(str(self.error).split()) or type(self.error).__name__


def each_apart(
    work: Callable[[Sequence[_Item]], Iterable[_Result]], items: Sequence[_Item], first: bool = False
) -> list[_Result | Failure]:
    """The result of every item, or why there is none.

    A batch that raises is done again item by item.

    Args:
        work: The results of a batch, one per item.
        items: The batch.
        first: Whether nothing was done before.

    Raises:
        Exception: If it may not be of one item (`may_be_of_one`), or all of several first items fail for one reason,
            which then is an option.
    """
    if not items:
        return []
    try:
        return [*work(items)]
    except Exception as error:
        if not may_be_of_one(error):
            raise
        if len(items) == 1:
            return [Failure(error)]
    found = [each for item in items for each in each_apart(work, [item])]
    failures = [each for each in found if isinstance(each, Failure)]
    if first and len(failures) == len(found) and len({each.reason for each in failures}) == 1:
        raise failures[0].error
    return found


def may_be_of_one(error: Exception) -> bool:
    """Whether an error may be of one item alone: of the user's or of time.

    Else it is of the program, of a service that is down, of a missing or corrupt file or of memory.
    """
    of_one = isinstance(error, UserError | TimeoutError) and not isinstance(error, _OF_ALL)
    return of_one or isinstance(error, SearchFailedError)


@contextmanager
def telling_what_is_kept(kept: str) -> Iterator[None]:
    """End an error of a service that is down with what is kept, and that the same command goes on from there.

    Args:
        kept: What is kept, such as "3 of 9 questions are kept"; empty: nothing is.
    """
    done = f"{kept}: type the same command again to go on" if kept else "Nothing is kept: type the same command again"
    try:
        yield
    except (*_DOWN, ConnectionRefusedError) as error:  # the last: of a part from outside
        kind = type(error) if isinstance(error, UserError) else UnavailableError
        raise kind(f"{str(error).rstrip('.')}. {done}.") from error


def answer_each(system: object, answer: Callable[[Sequence[Question]], Sequence[Answer]], asked: Asked) -> list[Answer]:
    """The answers of a system; that to a question that fails has the note `error`, and no text.

    The note `cut` names the models that read only a part of a question, `unknown_words` the indexes without its words.

    Args:
        system: The system.
        answer: Its answers to questions that have a text, at least one.
        asked: One text, several texts, or `Question` records.

    Raises:
        Exception: The first error, if no question can be answered; one that is not of a question.
    """
    rows = [asked] if isinstance(asked, str | Question) else [*asked]
    if not rows:
        return []
    wrong = {place: error for place, each in enumerate(rows) if (error := _wrong(each, place + 1))}
    ids = [one.id if isinstance(one, Question) else str(place) for place, one in enumerate(rows, start=1)]
    texts = ["" if place in wrong else one for place, one in enumerate(rows)]  # a wrong one is read by nothing
    records = [
        one if isinstance(one, Question) else Question(id_, clean(one)) for id_, one in zip(ids, texts, strict=True)
    ]
    sound = [place for place in range(len(records)) if place not in wrong]
    rest = iter(each_apart(answer, [records[place] for place in sound]))
    results = [Failure(wrong[place]) if place in wrong else next(rest) for place in range(len(records))]
    failed = [each for each in results if isinstance(each, Failure)]
    if len(failed) == len(records):
        raise failed[0].error
    answers = as_answers(records, results)
    note_unknown_words(system, [records[place] for place in sound], [answers[place] for place in sound])
    return with_cut_notes(system, records, answers)


def _wrong(asked: object, place: int) -> DataError | UserError | None:
    """The fault in a question's text or earlier turns."""
    texts = (asked.text, *asked.history) if isinstance(asked, Question) else (asked,)
    name = f"question {asked.id if isinstance(asked, Question) else place}"
    for text in texts:
        if not isinstance(text, str):
            return DataError(f"{name} is {reprlib.repr(text)}: give a text or a Question with texts")
        try:
            text.encode()
        except UnicodeEncodeError:
            return DataError(f"{name} is not UTF-8 text: convert it, e.g. with iconv")
    if not clean(str(texts[0])):
        return UserError(f'{name} is empty: give a text, e.g. "Who wrote Hamlet?"')
    return None


def as_answers(questions: Sequence[Question], found: Sequence[Answer | Failure]) -> list[Answer]:
    """The answers; that of a question that failed is empty and says why."""
    return [
        Answer(question.id, "", (), notes={ERROR: each.reason}) if isinstance(each, Failure) else each
        for question, each in zip(questions, found, strict=True)
    ]


def failure_of(answer: Answer) -> str:
    """Why there is no answer: the system, its reader or its search has failed; empty if none has."""
    if answer.text or answer.logprob is not None:
        return ""
    if answer.notes.get(ERROR):
        return str(answer.notes[ERROR])
    parts = answer.notes.get("contexts" if answer.costs.get("failed_calls") else "queries")
    failed = [each.get(ERROR) for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    lost = answer.costs.get("failed_calls") or (answer.costs.get("failed_searches") and not answer.evidence)
    return str(failed[0]) if failed and lost and all(failed) else ""


class FailedQuestions:
    """Counts the questions that failed or were cut, to tell at the end and by the exit code."""

    def __init__(self) -> None:
        self.asked = 0
        self.reasons: dict[str, str] = {}  # by id
        self.cut: dict[str, list[str]] = {}  # ids by model

    def add(self, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
        """Count some answers."""
        self.asked += len(questions)
        for question, answer in zip(questions, answers, strict=True):
            if reason := failure_of(answer):
                self.reasons[question.id] = reason.rstrip(".")
            cut = answer.notes.get(CUT)
            for name in cut if isinstance(cut, dict) else ():
                self.cut.setdefault(name, []).append(question.id)

    @property
    def failed(self) -> str:
        """How many failed, and why the first ones did, without a full stop; empty if none failed."""
        if not self.reasons:
            return ""
        first = "; ".join(f"{id_}: {reason}" for id_, reason in islice(self.reasons.items(), _SHOWN))
        further = f"; and {len(self.reasons) - _SHOWN:,} more" if len(self.reasons) > _SHOWN else ""
        return f"{len(self.reasons):,} of {self.asked:,} questions failed: {first}{further}"

    @property
    def facts(self) -> list[str]:
        """Lines on the questions that were cut and on those that failed, without full stops."""
        cut = ", ".join(f"{len(ids):,} for {name} (the first: {ids[0]})" for name, ids in self.cut.items())
        return [*([f"questions that are too long and were cut: {cut}"] if cut else []), *filter(None, [self.failed])]

    def check(self) -> None:
        """Raise SomeFailedError if a question failed."""
        if self.reasons:
            raise SomeFailedError(f"{self.failed}. The others are done.")
