"""Drafts: what a writer of questions is asked, and what it writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from common.records import Passage


@dataclass(frozen=True, slots=True)
class Task:
    """Passages to write a question about: one, or two of which the first mentions the second.

    `answer` is a candidate, which stands in the last passage; `number` counts the tasks about the same passages, from
    0.
    """

    passages: tuple[Passage, ...]
    answer: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its answer, or why there is none."""

    question: str
    answer: str
    failure: str = ""  # one of the reasons of `harness.synthesis.checks`; empty if there is a question


@runtime_checkable
class QuestionWriter(Protocol):
    """Writes questions.

    Optional attributes: `costs` of the last call, by name; `fact`, a line for the report; `chooses_answers`, true if it
    also takes tasks without a candidate.
    """

    def write(self, tasks: Sequence[Task]) -> list[Draft]:
        """One draft per task, in order.  The writer may choose another answer than the task's candidate."""
