"""One reader on the passages that several methods chose for each question.

Equal choices are read once (`harness.runtime.memo`).
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.records import Answer, Question, Ranked
from harness.evaluation.serialization import digest
from harness.interfaces import Reader
from harness.runtime.memo import Values, has_read_all
from harness.runtime.provenance import configuration, hardware, library_versions

CHOICES_AT_ONCE = 64
_FORMAT = 5  # version of the lines; increase it when their meaning changes
Choice = tuple[int, tuple[Ranked, ...]]  # a question's number, and passages, best first


@dataclass(frozen=True, slots=True)
class ReadChoices:
    """The answers of a reader."""

    answers: list[list[Answer]]  # one list per method, one answer per question, without evidence
    seconds: float  # of reading, those of an interrupted run included
    seconds_before: float  # of an interrupted run
    distinct: int  # number of choices that were read

    @property
    def seconds_each(self) -> float:
        """Mean seconds of a choice."""
        return self.seconds / max(1, self.distinct)


def read_choices(
    reader: Reader,
    questions: Sequence[Question],
    chosen: Sequence[Sequence[Sequence[Ranked]]],
    file: Path | None = None,
) -> ReadChoices:
    """The reader's answers to all questions with a gold answer, from the passages of each method.

    An answer is empty without a gold answer or passages.

    Args:
        reader: Gets the passages in the order of their choice.
        questions: All of them.
        chosen: Passages by method and question.
        file: For the answers; nothing is saved if the reader's configuration is unknown.
    """
    started = time.perf_counter()
    choices = distinct_choices(questions, chosen)
    memo = Values()
    if file is not None and (configured := configuration(reader)) is not None:
        versions = library_versions()
        head = {"reader": configured, "reader recipe": getattr(reader, "recipe", None), "hardware": hardware()}
        memo = Values(file, {**head, "versions": versions, "format": _FORMAT}, "answers")
    todo, asked = [*choices.values()], [digest([question]) for question in questions]

    def read(places: Sequence[int]) -> list[list[Any]]:
        batch = [todo[place] for place in places]
        answers = reader.read([questions[number] for number, _ in batch], [hits for _, hits in batch])
        return [[each.text, each.logprob, each.costs, each.notes] for each in answers]

    keys = [
        hashlib.sha256(json.dumps([asked[number], [(hit.passage.id, hit.score) for hit in hits]]).encode()).hexdigest()
        for number, hits in todo
    ]
    found = dict(zip(choices, memo(keys, read, "reading", CHOICES_AT_ONCE, lasts=has_read_all), strict=True))
    answers = [
        [
            Answer(question.id, text, (), logprob, costs, notes)
            for number, (question, hits) in enumerate(zip(questions, row, strict=True))
            for text, logprob, costs, notes in [found.get(_key(number, hits), ("", None, {}, {}))]
        ]
        for row in chosen
    ]
    seconds = time.perf_counter() - started + memo.seconds_before
    return ReadChoices(answers, seconds, memo.seconds_before, len(choices))


def distinct_choices(
    questions: Sequence[Question], chosen: Sequence[Sequence[Sequence[Ranked]]]
) -> dict[tuple[Any, ...], Choice]:
    """The different passages with their scores, in order, that are chosen for each question that has a gold answer."""
    return {
        _key(number, hits): (number, tuple(hits))
        for row in chosen
        for number, hits in enumerate(row)
        if hits and questions[number].answers
    }


def _key(number: int, hits: Sequence[Ranked]) -> tuple[Any, ...]:
    return number, tuple((hit.passage.id, hit.score) for hit in hits)
