"""Records with passages as Arrow files.

Question by question on disk, one read at a time, so that a process holds few of them.

    records.arrow    a row per record: its key, the fields needed of all records at once, the checksum of its batch
    passages.arrow   a record batch per record: a row per passage, and a JSON object in the batch's metadata

Both are Arrow IPC files, which `datasets.load_dataset("arrow", data_files=...)` reads, too. The rows are memory-mapped;
a batch of passages is read by its place in the file and not mapped, so that what a process has read once does not stay
in its memory.
"""

import json
import os
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from common.errors import ArtifactError
from common.records import Passage
from datamodules.cache.unused_caches import hold

RECORDS, PASSAGES = "records.arrow", "passages.arrow"
ROWS_PER_BATCH = 4096  # of records.arrow
_HEADS = pa.schema(
    [("key", pa.string()), ("text", pa.string()), ("answers", pa.list_(pa.string())), ("kind", pa.string()),
        ("history", pa.list_(pa.string())), ("group", pa.string()), ("passages", pa.int32()), ("checksum", pa.int64())]
)  # fmt: skip
_BODIES = pa.schema([(name, pa.string()) for name in ("id", "title", "text", "source", "corpus_id")])
_NOTE = b"note"


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a record without its passages."""

    key: str
    text: str = ""
    answers: tuple[str, ...] = ()
    kind: str = ""
    history: tuple[str, ...] = ()
    group: str = ""


class RecordWriter:
    """Writes records one by one; a context manager.

    Args:
        folder: An existing folder for the two files; None writes into memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._heads: list[tuple[Head, int, int]] = []

    def __enter__(self) -> Self:
        """Open the files."""
        self._sinks = [
            pa.BufferOutputStream() if self._folder is None
            else self._stack.enter_context(pa.OSFile(str(self._folder / name), "wb"))
            for name in (RECORDS, PASSAGES)
        ]  # fmt: skip
        self._rows, self._bodies = (
            self._stack.enter_context(pa.ipc.new_file(sink, schema))
            for sink, schema in zip(self._sinks, (_HEADS, _BODIES), strict=True)
        )
        return self

    def add(self, head: Head, passages: Sequence[Passage], note: Mapping[str, Any]) -> None:
        """Append a record.

        Args:
            head: Its key, and a question's text, answers, kind, earlier turns and group.
            passages: Its passages.
            note: Whatever else belongs to it, JSON types only.
        """
        rare = {
            field: [getattr(passage, field) for passage in passages]
            for field, usual in (("metadata", None), ("indexed", ""))
            if any(getattr(passage, field) != usual for passage in passages)
        }
        columns = [[getattr(passage, name) for passage in passages] for name in _BODIES.names]
        text = json.dumps({**note, **rare}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        arrays = [pa.array(column, pa.string()) for column in columns]
        self._bodies.write_batch(pa.record_batch(arrays, schema=_BODIES), custom_metadata={_NOTE: text})
        self._heads.append((head, len(passages), _checksum(columns, text)))
        if len(self._heads) == ROWS_PER_BATCH:
            self._flush()

    def __exit__(self, *error: object) -> None:
        """Close the files."""
        with self._stack:
            self._flush()

    def records(self) -> "Records":
        """The records that were written into memory."""
        return Records.in_memory(*(sink.getvalue() for sink in self._sinks))

    def _flush(self) -> None:
        columns = [[getattr(head, name) for head, *_ in self._heads] for name in _HEADS.names[:-2]]
        columns += [[row[place] for row in self._heads] for place in (1, 2)]
        self._rows.write_batch(
            pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _HEADS, strict=True)], schema=_HEADS)
        )
        self._heads = []


class Records:
    """Reads what `RecordWriter` has written.  In another process a copy opens the files again.

    Args:
        rows: The opened records.arrow.
        bodies: The opened passages.arrow.
        again: How a copy is opened: one of the constructors below, with its arguments.

    Raises:
        pa.ArrowInvalid: If one of them is no whole Arrow file.
    """

    def __init__(self, rows: pa.NativeFile, bodies: pa.NativeFile, again: tuple[Callable[..., "Records"], Any]) -> None:
        self._rows: pa.Table = pa.ipc.open_file(rows).read_all()
        self._bodies, self._again = pa.ipc.open_file(bodies), again
        if len(self._rows) != self._bodies.num_record_batches:
            raise pa.ArrowInvalid(f"{len(self._rows)} rows for {self._bodies.num_record_batches} batches of passages")
        self._checksums = self._rows.column("checksum").to_numpy()

    @classmethod
    def opened(cls, folder: Path) -> Self:
        """The records in a folder, which is kept from being removed as long as they are."""
        held = hold(folder / RECORDS)
        try:
            rows, bodies = pa.memory_map(str(folder / RECORDS)), pa.OSFile(str(folder / PASSAGES))
            found = cls(rows, bodies, (cls.opened, (folder,)))
        except BaseException:
            os.close(held)
            raise
        weakref.finalize(found, os.close, held)
        return found

    @classmethod
    def in_memory(cls, rows: pa.Buffer, bodies: pa.Buffer) -> Self:
        """The records in the contents of the two files."""
        return cls(pa.BufferReader(rows), pa.BufferReader(bodies), (cls.in_memory, (rows, bodies)))

    def __reduce__(self) -> tuple[Callable[..., "Records"], Any]:
        return self._again

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, name: str) -> list[Any]:
        """A column of all records: a field of `Head`, or the number of `passages`."""
        return self._rows.column(name).to_pylist()

    def heads(self) -> Iterator[Head]:
        """All records without their passages."""
        for batch in self._rows.to_batches():
            yield from map(_head, *(batch.column(name).to_pylist() for name in _HEADS.names[:-2]))

    def head(self, row: int) -> Head:
        """A record without its passages."""
        return _head(*(self._rows.column(name)[row].as_py() for name in _HEADS.names[:-2]))

    def body(self, row: int) -> tuple[tuple[Passage, ...], dict[str, Any]]:
        """A record's passages and its note.

        Raises:
            ArtifactError: If they are damaged.
        """
        try:
            batch, metadata = self._bodies.get_batch_with_custom_metadata(row)
            columns, text = [column.to_pylist() for column in batch.columns], metadata[_NOTE]
            sound = _checksum(columns, text) == self._checksums[row]
        except Exception:  # whatever Arrow makes of a damaged batch
            sound = False
        if not sound:
            place = next((each for each in self._again[1] if isinstance(each, Path)), "memory")
            raise ArtifactError(
                f"{place} is damaged: record {row} of {PASSAGES}. Remove that folder and type the same command again: "
                "the files are read anew."
            )
        note = json.loads(text.decode("utf-8", "surrogatepass"))
        nones: list[None] = [None] * len(batch)
        rare = note.pop("metadata", nones), note.pop("indexed", [""] * len(batch))
        return tuple(
            Passage(id_, text, title, source, corpus_id, metadata, indexed)
            for id_, title, text, source, corpus_id, metadata, indexed in zip(*columns, *rare, strict=True)
        ), note


def _head(key: str, text: str, answers: list[str], kind: str, history: list[str], group: str) -> Head:
    return Head(key, text, tuple(answers), kind, tuple(history), group)


def _checksum(columns: Sequence[Sequence[str | None]], note: bytes) -> int:
    """Of a record's passages, column by column, and its note."""
    return zlib.crc32(json.dumps(columns).encode(), zlib.crc32(note))
