"""Drafts: the tasks of a question writer, and its replies."""

from dataclasses import dataclass

from common.records import Passage


@dataclass(frozen=True, slots=True)
class DraftTask:
    """Passages to write a question about: one, or two of which the first mentions the second.

    `answer` is a candidate, which stands in the last passage, or empty; `number` counts the tasks about the same
    passages, from 0.
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
    why: str = ""  # the failed call's reason
