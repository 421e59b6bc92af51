"""Questions of official files as stored records: a sequence of `Question` that holds one question at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from common.progress import track
from common.records import GoldSegment, Question
from datamodules.cache.records import Records, RecordWriter

_HEAD = ("id", "text", "answers", "kind", "history", "group")  # fields that are read without the passages
_BODY = tuple(each.name for each in fields(Question) if each.name not in (*_HEAD, "passages"))


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
        body["gold_segments"] = [GoldSegment(*map(_tuples, each)) for each in body.get("gold_segments", ())]
        return Question(**_read(_HEAD, self._records.head(row)), passages=passages, **_read(body, body.values()))

    def select(self, places: ArrayLike) -> "CachedQuestions":
        """The questions at some places of these, in that order."""
        return CachedQuestions(self._records, self.rows[np.asarray(places, dtype=np.int64)])

    def without_passages(self) -> Iterator[Question]:
        """Id, text, answers, kind, history and group of every question, much faster than the whole question."""
        heads = list(self._records.heads())
        return (Question(**_read(_HEAD, heads[row])) for row in self.rows.tolist())


def _read(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(names, map(_tuples, values), strict=True))


def _tuples(value: Any) -> Any:
    """A value as it was before JSON made lists of tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def write_questions(writer: RecordWriter, questions: Iterator[Question], what: str) -> None:
    """Write questions as records.

    Args:
        writer: Where to.
        questions: The questions, which are read one at a time.
        what: Their name for the progress, such as `reading training questions`.
    """
    for one in track(questions, None, what):
        body: dict[str, Any] = {name: value for name in _BODY if (value := getattr(one, name))}
        if one.gold_segments:
            body["gold_segments"] = [*map(astuple, one.gold_segments)]
        writer.add([getattr(one, name) for name in _HEAD], one.passages, body)
