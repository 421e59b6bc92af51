"""Questions that fail apart from the others: these are answered, and the answer to one that fails says why.

Also the notes on questions that are too long for a model and were cut.
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from typing import Any, Generic, TypeVar

from common.errors import (
    ArtifactError,
    DataError,
    MemoryShortError,
    MissingInputError,
    RefusedError,
    SomeFailedError,
    UnavailableError,
    UserError,
)
from common.records import Answer, Asked, Question, clean
from harness.runtime.long_questions import cutting_models

ERROR, CUT = "error", "cut"  # notes of an answer: why there is none; which models read a part of the question alone
_OF_ALL = (MissingInputError, ArtifactError, MemoryShortError, BrokenPipeError)  # whatever was asked
_SERVICE = (UnavailableError, RefusedError, ConnectionError, TimeoutError)  # a service fails, which may be down for all
_OWN = (UserError, *_SERVICE)  # may be of one item; any other error is the program's
_OF_EACH = "failures_of_each"  # attribute of an error of a batch: why each item failed
_FIRST, _IN_A_ROW = 3, 20  # failures that show that nothing can succeed
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


class Apart(Generic[_Item, _Result]):
    """Runs batched work so that an item that fails does not end the others.

    A batch that raises is done again item by item, unless its error says why each item failed. An error of the program,
    of a missing or corrupt file or of memory is raised; any other one is the item's own. It is raised where it shows
    that nothing can succeed: twenty failures of a service in a row, or a batch in which nothing has succeeded, nor
    before it, and in which a service or all items for one reason have failed. One of data (`DataError`) never is.

    Args:
        work: The results of a batch, one per item.
        stream: Whether items come one by one, so that the first ones may fail before any other is known: three failures
            of a service or twenty for one reason are then needed.
    """

    def __init__(self, work: Callable[[Sequence[_Item]], Sequence[_Result]], stream: bool = False) -> None:
        self.work, self.stream, self.succeeded = work, stream, False
        self.lost: list[Exception] = []  # since the last success

    def __call__(self, items: Sequence[_Item]) -> list[_Result | Failure]:
        """The result of every item, or why there is none."""
        if not items:
            return []
        try:
            found: list[_Result | Failure] = [*self.work(items)]
        except Exception as error:
            found = self._failures(error, len(items))
        if found:
            for each in found:
                self._count(each)
        else:
            for item in items:
                try:
                    one: list[_Result | Failure] = [*self.work([item])]
                except Exception as error:
                    one = self._failures(error, 1)
                found += one
                try:
                    self._count(one[0])
                except Exception as error:
                    setattr(error, _OF_EACH, [*found, *[Failure(error)] * (len(items) - len(found))])
                    raise
        if all(isinstance(each, Failure) for each in found):
            self._check_batch(found)
        return found

    def end(self) -> None:
        """Raise the first error if nothing has succeeded."""
        if self.lost and not self.succeeded:
            raise self.lost[0]

    def _count(self, result: _Result | Failure) -> None:
        if not isinstance(result, Failure):
            self.succeeded, self.lost = True, []
            return
        self.lost.append(result.error)
        if len(self.lost) >= _IN_A_ROW and all(isinstance(each, _SERVICE) for each in self.lost):
            raise result.error

    def _check_batch(self, found: list[_Result | Failure]) -> None:
        """Raise the last error of a batch in which all items failed if nothing can succeed."""
        if self.succeeded or any(isinstance(each, DataError) for each in self.lost):
            return
        service = all(isinstance(each, _SERVICE) for each in self.lost)
        alike = len({str(each) for each in self.lost}) == 1
        needed = 1 if not self.stream else _FIRST if service else _IN_A_ROW
        if (service or alike) and len(self.lost) >= needed:
            setattr(self.lost[-1], _OF_EACH, found)
            raise self.lost[-1]

    @staticmethod
    def _failures(error: Exception, count: int) -> list[_Result | Failure]:
        """Why each item of a batch failed that raised an error; empty if that is not known.

        Raises:
            Exception: The error, if it is not of one item.
        """
        if not may_be_of_one(error):
            raise error
        known = getattr(error, _OF_EACH, [])
        return [*known] if len(known) == count else [Failure(error)] if count == 1 else []


def failures_of_each(error: BaseException, count: int) -> list[Exception]:
    """Why each item of a batch failed, if its error says so of all; else empty."""
    known = getattr(error, _OF_EACH, [])
    return [each.error for each in known if isinstance(each, Failure)] if len(known) == count else []


def may_be_of_one(error: Exception) -> bool:
    """Whether an error may be of one item alone: not one of the program, of a missing or corrupt file, of memory."""
    return isinstance(error, _OWN) and not isinstance(error, _OF_ALL)


def each_apart(answer: Callable[[Any, Sequence[Question]], list[Answer]]) -> Callable[[Any, Asked], list[Answer]]:
    """Decorates `System.answer`: a question that fails gets an answer without text whose note `error` says why.

    The note `cut` names the models that read only a part of a question. The error is raised if no question of the call
    can be answered.
    """

    @wraps(answer)
    def answered(self: Any, questions: Asked) -> list[Answer]:
        asked = [questions] if isinstance(questions, str | Question) else [*questions]
        wrong = {place: error for place, each in enumerate(asked) if (error := _wrong(each, place + 1))}
        records = [
            one if isinstance(one, Question) else Question(str(place + 1), "" if place in wrong else clean(one))
            for place, one in enumerate(asked)
        ]
        apart = Apart[Question, Answer](lambda batch: answer(self, list(batch)))
        rest = iter(apart([each for place, each in enumerate(records) if place not in wrong]))
        results = [Failure(wrong[place]) if place in wrong else next(rest) for place in range(len(records))]
        failed = [each for each in results if isinstance(each, Failure)]
        if failed and len(failed) == len(records):
            setattr(failed[0].error, _OF_EACH, failed)
            raise failed[0].error
        return with_cut_notes(self, records, as_answers(records, results))

    return answered


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
            return DataError(f"{name} is not UTF-8 text")
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


def with_cut_notes(system: object, questions: Sequence[Question], answers: Sequence[Answer]) -> list[Answer]:
    """The answers, with a note which models of the system read only a part of the question."""
    models = dict(cutting_models(system))
    noted = []
    for question, answer in zip(questions, answers, strict=True):
        cut = {name: note for name, each in models.items() if (note := each.cut_note(question.text, question.history))}
        noted.append(with_cuts(answer, cut))
    return noted


def with_cuts(answer: Answer, cut: Mapping[str, str]) -> Answer:
    """An answer with further notes by model on what was cut; those that it has stay."""
    known = answer.notes.get(CUT)
    cut = {**cut, **(known if isinstance(known, dict) else {})}
    return replace(answer, notes={**answer.notes, CUT: cut}) if cut else answer
