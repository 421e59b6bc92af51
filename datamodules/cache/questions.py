"""Questions of official files as stored records: a sequence of `Question` that holds one question at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from common.progress import track
from common.records import GoldSegment, Question
from datamodules.cache.arrow_records import Head, Records, RecordWriter

_TUPLES = (
    "support",
    "unshipped_support",
    "scores",
    "gold_corpus_ids",
    "withheld",
)  # fields of a question in the note


class CachedQuestions(Sequence[Question]):
    """Questions that are read from their records on request.

    Args:
        records: Of `write_questions`.
        rows: Which of them, in this order; all when None.
    """

    def __init__(self, records: Records, rows: ArrayLike | None = None) -> None:
        self._records = records
        self.rows = np.arange(len(records)) if rows is None else np.asarray(rows, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Question: ...
    @overload
    def __getitem__(self, place: slice) -> "CachedQuestions": ...
    def __getitem__(self, place: int | slice) -> "Question | CachedQuestions":
        if isinstance(place, slice):
            return self.select(np.arange(len(self))[place])
        row = int(self.rows[place])
        head = self._records.head(row)
        passages, note = self._records.body(row)
        lists: dict[str, Any] = {name: tuple(note[name]) for name in _TUPLES if name in note}
        segments = tuple(
            GoldSegment(document, tuple(evidence), kind, tuple(headings), page)
            for document, evidence, kind, headings, page in note.get("gold_segments", ())
        )
        grades = tuple((id_, grade) for id_, grade in note.get("grades", ()))
        return replace(_of(head), passages=passages, gold_segments=segments, grades=grades, **lists)

    def select(self, places: ArrayLike) -> "CachedQuestions":
        """The questions at some places of these, in that order."""
        return CachedQuestions(self._records, self.rows[np.asarray(places, dtype=np.int64)])

    def without_passages(self) -> Iterator[Question]:
        """Id, text, answers, kind, history and group of every question, much faster than the whole question."""
        heads = list(self._records.heads())
        return (_of(heads[row]) for row in self.rows.tolist())


def _of(head: Head) -> Question:
    return Question(head.key, head.text, head.answers, kind=head.kind, history=head.history, group=head.group)


def write_questions(writer: RecordWriter, questions: Iterator[Question], what: str) -> None:
    """Write questions as records.

    Args:
        writer: Where to.
        questions: The questions, which are read one at a time.
        what: Their name for the progress, such as `reading training questions`.
    """
    for one in track(questions, None, what):
        note: dict[str, Any] = {name: value for name in (*_TUPLES, "grades") if (value := getattr(one, name))}
        if one.gold_segments:
            note["gold_segments"] = [astuple(segment) for segment in one.gold_segments]
        writer.add(Head(one.id, one.text, one.answers, one.kind, one.history, one.group), one.passages, note)
