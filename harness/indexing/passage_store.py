"""Passage store: passages as JSON Lines with a table of byte offsets, read by position from a memory map.

Opening a corpus of any size takes neither time nor memory.
"""

import hashlib
import json
import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from common.errors import ArtifactError, DataError
from common.files import read_json, write_atomically, write_text
from common.records import TEXT_VERSION, Passage, clean
from datamodules.formats.row_counts import REPEATED_PASSAGE, SHARED_ID, RowCounts

PASSAGES, OFFSETS = "passages.jsonl", "passages.offsets"
OTHER_IDS = "passages.other_ids.json"  # further own ids of passages, where there are any
KEPT = 8192  # passages that were read last, about 2 KB each
IMAGES = "images"  # folder of the images of documents, in their index


def indexed_text(passage: Passage) -> str:
    """Title and text of a passage, or its `indexed`: what retrievers index, and DR-RAG's second-stage queries append.

    Words (`common.words`) and encoders fold it further.
    """
    return clean(passage.indexed or f"{passage.title} {passage.text}")


# recorded in every index manifest; change it together with `indexed_text`
TEXT_FORMAT = f"nfc(title + blank + text); v{TEXT_VERSION}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus that was written."""

    passages: int
    # sha256 over the passage ids in order, one per line, and what is indexed of segments: the content, not the corpus's
    # own ids
    fingerprint: str
    labels: str | None  # sha256 over the corpus's own ids and metadata; None if it has neither


def write_passages(folder: Path, passages: Iterable[Passage], counts: RowCounts | None = None) -> Corpus:
    """Write a corpus; of passages with the same title and text only the first is written, with its own id and metadata.

    Args:
        folder: Receives `PASSAGES`, `OFFSETS` and, where a passage has several own ids, `OTHER_IDS`, each written
            atomically.
        passages: Read once, as a stream.
        counts: Counts rows that are not written; it must be what counts in reading the passages. Segments of documents
            and passages of questions are no rows.

    Raises:
        DataError: If there is no passage.
        ArtifactError: If writing to disk fails.
    """
    # id -> hash of the own id; about 150 bytes each: 3 GB for Wikipedia's 21 million passages
    seen: dict[str, int] = {}
    owners = set[int]()  # hashes of the own ids
    digest, labels, offsets = hashlib.sha256(), hashlib.sha256(), array("Q")
    labelled = False
    further: dict[str, list[str]] = {}  # own id -> the passages of an earlier own id that have it too

    def write(temporary: Path) -> None:
        nonlocal labelled
        position = 0
        with temporary.open("wb") as file:
            for passage in passages:
                own = hash(passage.corpus_id)
                if passage.id in seen:
                    if passage.corpus_id and seen[passage.id] != own:
                        further.setdefault(passage.corpus_id, []).append(passage.id)
                    if counts is not None and counts.is_reading:
                        counts.add(REPEATED_PASSAGE)
                    continue
                seen[passage.id] = own
                if counts is not None and counts.is_reading and passage.corpus_id:
                    if own in owners:
                        counts.add(SHARED_ID, f"{counts.place}, id {passage.corpus_id!r}")
                    owners.add(own)
                digest.update(passage.id.encode() + b"\n")
                offsets.append(position)
                if passage.labels:
                    labelled = True
                    labels.update(json.dumps([passage.id, passage.labels], sort_keys=True).encode() + b"\n")
                # the id of a segment says not all that is indexed
                if passage.indexed or "document" in (passage.metadata or {}):
                    digest.update(indexed_text(passage).encode() + b"\n")
                position += file.write(json.dumps(passage.row, ensure_ascii=False).encode() + b"\n")
        offsets.append(position)
        if len(seen) == 0:
            raise DataError("The corpus holds no passage: nothing to index. Check the files and the layout.")

    write_atomically(folder / PASSAGES, write)
    write_atomically(folder / OFFSETS, lambda temporary: temporary.write_bytes(offsets.tobytes()))
    if further:
        labels.update(json.dumps(further, sort_keys=True).encode())
        write_text(folder / OTHER_IDS, json.dumps(further, ensure_ascii=False))
    else:
        (folder / OTHER_IDS).unlink(missing_ok=True)
    return Corpus(len(seen), digest.hexdigest(), labels.hexdigest() if labelled or further else None)


class PassageStore(Sequence[Passage]):
    """Passages of a folder, read by position.

    In an index of documents the metadata name the file of an image segment's image by its path in the index folder.

    Args:
        folder: Written by `write_passages`.

    Raises:
        ArtifactError: If the offsets do not match the file's size.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, folder / PASSAGES
        self._images = folder / IMAGES if (folder / IMAGES).is_dir() else None
        self._offsets = array("Q", (folder / OFFSETS).read_bytes())
        with self._path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._offsets) < 2 or self._offsets[-1] != len(self._bytes):
            raise ArtifactError(f"{self._path} does not match its table of offsets. Build the index again.")
        self._others: dict[str, list[str]] = {}  # passage -> its further own ids
        if (folder / OTHER_IDS).is_file():
            for own, ids in read_json(folder / OTHER_IDS, "Build the index again.").items():
                for id_ in ids:
                    self._others.setdefault(id_, []).append(own)
        # parsing is most of the time of a search that returns many passages
        self._kept = lru_cache(maxsize=KEPT)(self._parsed)
        self._size = len(self._offsets) - 1

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> Passage:  # type: ignore[override]  # no slices
        if not 0 <= position < self._size:
            raise IndexError(f"position {position} of {self._size} passages")
        return self._kept(position)

    def __iter__(self) -> Iterator[Passage]:
        return self.part(0, len(self))

    def part(self, first: int, end: int) -> Iterator[Passage]:
        """The passages from `first` to before `end`, which are not kept."""
        return map(self._parsed, range(first, end))

    def _parsed(self, position: int) -> Passage:
        row = json.loads(self._bytes[self._offsets[position] : self._offsets[position + 1]])
        if self._images is not None and "image" in row.get("metadata", ()):
            row["metadata"]["image"] = str(self._images / row["metadata"]["image"])
        if row["id"] in self._others:
            row["other_ids"] = self._others[row["id"]]
        return Passage.from_row(row)
