"""Questions of official files as stored records: a sequence of `Question` that holds one question at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from common.progress import track
from common.records import Gold, GoldSegment, Passage, Question, Source
from datamodules.cache.records import Records, RecordWriter

_HEAD = ("id", "text", "answers", "kind", "history", "source")  # fields that are read without the passages


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
        passages, body = self._records.body(row)
        return _question(self._records.head(row), passages, body)

    def select(self, places: ArrayLike) -> "CachedQuestions":
        """The questions at some places of these, in that order."""
        return CachedQuestions(self._records, self.rows[np.asarray(places, dtype=np.int64)])

    def without_passages(self) -> Iterator[Question]:
        """Id, text, answers, kind, history and source of every question, much faster than the whole question."""
        heads = list(self._records.heads())
        return (_question(heads[row]) for row in self.rows.tolist())


def _question(head: list[Any], passages: tuple[Passage, ...] = (), body: dict[str, Any] | None = None) -> Question:
    known = _tuples(dict(zip(_HEAD, head, strict=True)) | (body or {}))
    gold, source = known.pop("gold", {}), Source(**known.pop("source"))
    gold["segments"] = tuple(GoldSegment(**each) for each in gold.get("segments", ()))
    return Question(passages=passages, gold=Gold(**gold), source=source, **known)


def _tuples(value: Any) -> Any:
    """A value as it was before JSON made lists of tuples."""
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that hold something: most questions have no grades, no segments, no group."""
    return {name: value for name, value in fields.items() if value}


def write_questions(writer: RecordWriter, questions: Iterator[Question], what: str) -> None:
    """Write questions as records.

    Args:
        writer: Where to.
        questions: The questions, which are read one at a time.
        what: Their name for the progress, such as `reading training questions`.
    """
    for one in track(questions, None, what):
        head = [one.id, one.text, one.answers, one.kind, one.history, _filled(asdict(one.source))]
        body = {"support": one.support, "scores": one.scores, "gold": _filled(asdict(one.gold))}
        writer.add(head, one.passages, _filled(body))
