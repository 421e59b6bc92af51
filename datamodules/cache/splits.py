"""Training and validation split of the questions of official files, which are read once and then stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.validation_split import belongs_to, validation_shares
from datamodules.cache.questions import CachedQuestions, write_questions
from datamodules.cache.record_cache import CachedRecords, is_large, stored
from datamodules.cache.records import RecordWriter
from datamodules.examples.data_files import QuestionDataFile, distinct_questions, paths_of
from datamodules.formats.open_data import content_files, part_of
from datamodules.formats.row_counts import RowCounts


@dataclass(frozen=True, slots=True)
class Split:
    """Training and validation questions, and the stores that they are read from."""

    training: CachedQuestions
    held_out: CachedQuestions
    stores: tuple[CachedRecords, ...]  # of the training files; then of the validation files, if there are any

    def counts(self, strict: bool) -> RowCounts:
        """The unusual rows of the files.

        Raises:
            DataError: If there is something and `strict`.
        """
        counts = RowCounts(strict)
        for store in self.stores:
            counts.add_all(store.records.note)
        return counts


def split_questions(
    train: Sequence[QuestionDataFile], validation: Sequence[QuestionDataFile], fraction: float, cache: str | None = None
) -> Split:
    """Training and validation questions, without duplicates.

    Questions that belong together with one of the validation files (`common.validation_split.belongs_to`) are removed
    from training; without such files, a hash split is used.

    Args:
        train: Training files.
        validation: Validation files; may be empty.
        fraction: Share of the questions that the hash split holds out, in (0, 1).
        cache: Folder in which the questions of large files are stored; None keeps them in memory.
    """
    first = _stored(train, cache, "training questions")
    questions = CachedQuestions(first.records)
    if validation:
        second = _stored(validation, cache, "validation questions")
        held_out = CachedQuestions(second.records)
        known = {key for question in held_out.without_passages() for key in belongs_to(question)}
        own = [known.isdisjoint(belongs_to(question)) for question in questions.without_passages()]
        return Split(questions.select(np.flatnonzero(own)), held_out, (first, second))
    shares = np.array(validation_shares(questions.without_passages()))
    kept, held = np.flatnonzero(shares >= fraction), np.flatnonzero(shares < fraction)
    return Split(questions.select(kept), questions.select(held), (first,))


def are_stored(sources: Sequence[QuestionDataFile], cache: str | None) -> bool:
    """Whether the questions of these files are stored: one process reads the files, the others read the store."""
    return cache is not None and is_large(_files(sources))


def _stored(sources: Sequence[QuestionDataFile], cache: str | None, what: str) -> CachedRecords:
    key = [[each.layout, part_of(each.path), each.limit, each.corpus is not None, each.min_grade] for each in sources]

    def write(writer: RecordWriter) -> list[list[object]]:
        counts = RowCounts()
        write_questions(writer, distinct_questions(sources, counts), f"reading {what}")
        return counts.as_json()

    return stored(cache, _files(sources), {"questions": key}, write, what)


def _files(sources: Sequence[QuestionDataFile]) -> list[Path]:
    """The files that hold the questions.

    Raises as `read_questions` does at once: an unknown layout comes before a missing file.
    """
    for source in sources:
        source.questions()
    return [file for path in paths_of(sources) for file in content_files(path)]
