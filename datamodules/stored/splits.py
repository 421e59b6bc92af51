"""Training and validation split of the questions of official files, which are read once and then stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.held_out import validation_share
from common.records import clean
from datamodules.examples.splits import QuestionSource, distinct_questions, paths_of
from datamodules.formats.sources import content_files, part_of
from datamodules.stored.cache import Stored, is_large, stored
from datamodules.stored.questions import StoredQuestions, write_questions


@dataclass(frozen=True, slots=True)
class Split:
    """Training and validation questions, and the stores that they are read from."""

    training: StoredQuestions
    held_out: StoredQuestions
    stores: tuple[Stored, ...]  # of the training files; then of the validation files, if there are any


def split_questions(
    train: Sequence[QuestionSource], validation: Sequence[QuestionSource], fraction: float, cache: str | None = None
) -> Split:
    """Training and validation questions, without duplicates.

    Questions of the validation files are removed from training; without such files, a hash split is used.

    Args:
        train: Training files.
        validation: Validation files; may be empty.
        fraction: Share of the questions that the hash split holds out, in (0, 1).
        cache: Folder in which the questions of large files are stored; None keeps them in memory.
    """
    first = _stored(train, cache, "training questions")
    questions = StoredQuestions(first.records)
    if validation:
        second = _stored(validation, cache, "validation questions")
        held_out = StoredQuestions(second.records)
        known = {clean(question.text) for question in held_out.without_passages()}
        own = [clean(question.text) not in known for question in questions.without_passages()]
        return Split(questions.select(np.flatnonzero(own)), held_out, (first, second))
    shares = np.array([validation_share(question) for question in questions.without_passages()])
    kept, held = np.flatnonzero(shares >= fraction), np.flatnonzero(shares < fraction)
    return Split(questions.select(kept), questions.select(held), (first,))


def are_stored(sources: Sequence[QuestionSource], cache: str | None) -> bool:
    """Whether the questions of these files are stored: one process reads the files, and the others what it stored."""
    return cache is not None and is_large(_files(sources))


def _stored(sources: Sequence[QuestionSource], cache: str | None, what: str) -> Stored:
    key = [[source.layout, part_of(source.path), source.limit, source.corpus is not None] for source in sources]
    return stored(
        cache, _files(sources), {"questions": key},
        lambda writer: write_questions(writer, distinct_questions(sources), f"reading {what}"), what,
    )  # fmt: skip


def _files(sources: Sequence[QuestionSource]) -> list[Path]:
    """The files that hold the questions.

    Raises as `read_questions` does at once: an unknown layout comes before a missing file.
    """
    for source in sources:
        source.questions()
    return [file for path in paths_of(sources) for file in content_files(path)]
