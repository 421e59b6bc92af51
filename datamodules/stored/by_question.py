"""Mined passages and expansions as stored records, found by the id of their question."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from common.progress import track
from common.records import Passage
from datamodules.formats.expansions import Expansion, expansion_rows
from datamodules.formats.mined_negatives import Mined, mined_rows
from datamodules.stored.arrow_records import Head, RecordWriter
from datamodules.stored.cache import Stored, stored

Found = TypeVar("Found", Mined, list[Expansion])
Body = tuple[tuple[Passage, ...], dict[str, Any]]  # of one record


class ByQuestion(Mapping[str, Found]):
    """What files say about questions, read when it is asked for.

    Args:
        kept: Records with the questions' ids as keys; several of one question count together, in order.
        merge: Makes the value of the bodies of one question's records.
    """

    def __init__(self, kept: Stored, merge: Callable[[list[Body]], Found]) -> None:
        self._records, self.name = kept.records, kept.name
        self._merge: Callable[[list[Body]], Found] = merge
        self._rows: dict[str, list[int]] = {}
        for row, question_id in enumerate(kept.records.column("key")):
            self._rows.setdefault(question_id, []).append(row)

    def __getitem__(self, question_id: str) -> Found:
        return self._merge([self._records.body(row) for row in self._rows[question_id]])

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def stored_mined(paths: Sequence[str], cache: str | None = None) -> ByQuestion[Mined]:
    """What `datamodules.formats.mined_negatives.read_mined` returns, kept in `cache` if it is large.

    Raises as that, and ArtifactError.
    """

    def write(writer: RecordWriter) -> None:
        for question_id, mined in track(mined_rows(paths), None, "reading mined passages of questions"):
            writer.add(Head(question_id), mined, {"hits": mined.hits})

    kept = stored(cache, _existing(paths, mined_rows), {"of": "mined"}, write, "mined passages")
    return ByQuestion(kept, _merged_mined)


def stored_expansions(paths: Sequence[str], cache: str | None = None) -> ByQuestion[list[Expansion]]:
    """What `datamodules.formats.expansions.read_expansions` returns, kept in `cache` if it is large.

    Raises as that, and ArtifactError.
    """

    def write(writer: RecordWriter) -> None:
        for question_id, found in track(expansion_rows(paths), None, "reading expansions of questions"):
            passages = list({p.id: p for each in found for p in (*each.chain, *each.candidates)}.values())
            place = {passage.id: number for number, passage in enumerate(passages)}
            places = [[[place[p.id] for p in part] for part in (each.chain, each.candidates)] for each in found]
            writer.add(Head(question_id), passages, {"expansions": places})

    kept = stored(cache, _existing(paths, expansion_rows), {"of": "expansions"}, write, "expansions")
    return ByQuestion(kept, _merged_expansions)


def _merged_mined(bodies: list[Body]) -> Mined:
    mined = Mined()
    for passages, note in bodies:
        mined.add(Mined(passages, note["hits"]))
    return mined


def _merged_expansions(bodies: list[Body]) -> list[Expansion]:
    return [
        Expansion(*(tuple(passages[place] for place in part) for part in parts))
        for passages, note in bodies
        for parts in note["expansions"]
    ]


def _existing(paths: Sequence[str], rows: Callable[[Sequence[str]], Iterator[Any]]) -> list[Path]:
    """The files; if one does not exist, the error of reading it."""
    for path in paths:
        if not Path(path).is_file():
            next(rows([path]))
    return [Path(path) for path in paths]
