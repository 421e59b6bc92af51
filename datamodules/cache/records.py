"""Records with passages as checked rows: question by question on disk, one read at a time.

A file has a row per record with its passages and whatever else belongs to it, then a row per record with its head, the
fields that are needed of all records at once, and last a row with what was found while they were written. All are JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from common.records import Passage
from datamodules.cache.checked_rows import CheckedRows, RowWriter

_FIELDS = attrgetter("id", "text", "title", "source", "corpus_id", "metadata", "indexed")


class RecordWriter:
    """Writes records one by one.

    Args:
        rows: Where to.
    """

    def __init__(self, rows: RowWriter) -> None:
        self._rows = rows
        self._heads: list[bytes] = []

    def add(self, head: object, passages: Sequence[Passage], more: Mapping[str, Any]) -> None:
        """Append a record.

        Args:
            head: What is needed of all records at once, JSON types only.
            passages: Its passages.
            more: Whatever else belongs to it, JSON types only.
        """
        self._rows.add(_json([[*map(_FIELDS, passages)], more]))
        self._heads.append(_json(head))

    def finish(self, note: object) -> None:
        """Append the heads, and a note, JSON types only."""
        for row in (*self._heads, _json(note)):
            self._rows.add(row)


class Records:
    """Reads what `RecordWriter` has written.  All raise ArtifactError if a row is damaged.

    Args:
        rows: The file.
    """

    def __init__(self, rows: CheckedRows) -> None:
        self._rows, self._count = rows, len(rows) // 2

    def __len__(self) -> int:
        return self._count

    @property
    def note(self) -> Any:
        """What was found while they were written."""
        return json.loads(self._rows[2 * self._count])

    def head(self, row: int) -> Any:
        """The head of a record."""
        return json.loads(self._rows[self._count + row])

    def heads(self) -> Iterator[Any]:
        """The heads of all records."""
        return map(self.head, range(self._count))

    def body(self, row: int) -> tuple[tuple[Passage, ...], dict[str, Any]]:
        """A record's passages, and what else belongs to it."""
        passages, more = json.loads(self._rows[row])
        return tuple(Passage(*each) for each in passages), more


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
