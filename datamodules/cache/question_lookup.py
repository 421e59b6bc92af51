"""Mined passages as stored records, found by the id of their question."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from common.progress import track
from datamodules.cache.record_cache import CachedRecords, stored
from datamodules.cache.records import RecordWriter
from datamodules.formats.file_kinds import rereadable
from datamodules.formats.mined_negatives import Mined, mined_rows


class QuestionLookup(Mapping[str, Mined]):
    """The entries of files on questions, read on request.

    Args:
        kept: Records with the questions' ids as heads; several of one question count together, in order.
    """

    def __init__(self, kept: CachedRecords) -> None:
        self._records, self.name = kept.records, kept.name
        self._rows: dict[str, list[int]] = {}
        for row, question_id in enumerate(kept.records.heads()):
            self._rows.setdefault(question_id, []).append(row)

    def __getitem__(self, question_id: str) -> Mined:
        mined = Mined()
        for passages, more in (self._records.body(row) for row in self._rows[question_id]):
            mined.add(Mined(passages, more["hits"]))
        return mined

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def stored_mined(paths: Sequence[str], cache: str | None = None) -> QuestionLookup:
    """The mined passages of one or several files by question id, kept in `cache` if they are large.

    Raises as `mined_rows`, and ArtifactError.
    """

    def write(writer: RecordWriter) -> None:
        for question_id, mined in track(mined_rows(paths), None, "reading mined passages of questions"):
            writer.add(question_id, mined, {"hits": mined.hits})

    return QuestionLookup(stored(cache, _existing(paths), {"of": "mined"}, write, "mined passages"))


def _existing(paths: Sequence[str]) -> list[Path]:
    """The files; if one does not exist, the error of reading it."""
    for path in paths:
        if not Path(path).exists():
            next(mined_rows([path]))
    return [rereadable(Path(path)) for path in paths]
