"""How documents are read and cut into segments: the options that matter."""

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from common.ranges import NonNegativeInt, PositiveFloat, PositiveInt, at_least
from common.records import TEXT_VERSION
from documents.reading.file_types import PACKAGES, READING_VERSIONS, FileType
from documents.records import Document
from documents.segments.augmentation import MAX_WORDS, Cascade

SECONDS, MEBIBYTES = 600.0, 2048  # of CPU time and memory that one document may take; most take seconds and 200 MiB
OVERLAP_WORDS = 40  # of chunks
NO_REPLY = "no reply ("  # in a line of `left_out`: the document is given to the pass again the next time
_MAX_WORKERS = 8
_MAX_SECONDS, _MAX_MEBIBYTES = 1_000_000, 1_000_000  # what operating systems take as limits

if TYPE_CHECKING:
    Mebibytes = int
else:
    Mebibytes = at_least(256)  # the process itself takes about 100


@dataclass(frozen=True, slots=True)
class DocumentPass:
    """A step that changes documents after reading. This package calls no model; the caller passes it in.

    Args:
        name: Of its part in an index's recipe.
        recipe: What the result depends on, JSON types only: with another one documents are given again.
        version: Of its code, see `code_version`; likewise.
        convert: Takes documents one after the other, and yields the result of each, in order. Each result is stored at
            once, so that a stopped run goes on behind it.
    """

    name: str
    recipe: dict[str, Any]
    version: str
    convert: Callable[[Iterator[Document]], Iterator[Document]]


@dataclass(frozen=True)
class ConversionOptions:
    """How documents are read.

    Args:
        outline: Whether the outline (bookmarks) of a PDF file is used to find its headings.
        passes: The steps that changed them afterwards, one after the other.
    """

    outline: bool = True
    passes: tuple[DocumentPass, ...] = ()

    @property
    def recipe(self) -> dict[str, Any]:
        """The options, for an index's recipe; `engine` names the only one, as recipes of earlier releases do."""
        return {"engine": "auto", "outline": self.outline, **{each.name: each.recipe for each in self.passes}}


def versions(kind: FileType) -> dict[str, str]:
    """How documents of a type are read: with another version of the rules or of a package they are read again."""
    packages = {name: _version(name) for name in PACKAGES[kind].values()}
    return {"type": kind, "reading": str(READING_VERSIONS[kind]), "texts": str(TEXT_VERSION), **packages}


def code_version(files: Iterable[Path]) -> str:
    """Digest of the code that makes something: with other code it is made again."""
    code = hashlib.sha256()
    for file in sorted(files):
        code.update(file.read_bytes())
    return code.hexdigest()[:16]


@dataclass(frozen=True)
class ReadingLimits:
    """Limits on the reading of documents.

    Args:
        seconds: CPU time that one document may take.
        mebibytes: Memory that it may take; a larger file is not read.
        workers: Processes that read at the same time; None: one for each processor, at most 8.

    Raises:
        UserError: If a limit is above what operating systems take.
    """

    seconds: PositiveFloat = SECONDS
    mebibytes: Mebibytes = MEBIBYTES
    workers: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.seconds > _MAX_SECONDS or self.mebibytes > _MAX_MEBIBYTES:
            raise UserError(
                f"reading.seconds is at most {_MAX_SECONDS:,} and reading.mebibytes at most {_MAX_MEBIBYTES:,}, "
                f"got {self.seconds:g} and {self.mebibytes}."
            )

    @property
    def processes(self) -> int:
        """Number of processes."""
        return self.workers or min(os.cpu_count() or 1, _MAX_WORKERS)


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class Cutting:
    """How a document is cut into segments (HiQA), or into chunks of a fixed size (its baseline).

    Args:
        max_words: A longer segment is split.
        cascade: The metadata that are indexed before its text: `path` (before chunks the title), `heading` or `none`.
        chunk_words: Length of chunks in words; None: segments.
        chunk_overlap: Words that neighbouring chunks share.

    Raises:
        UserError: If chunks would share all their words.
    """

    max_words: PositiveInt = MAX_WORDS
    cascade: Cascade = "path"
    chunk_words: PositiveInt | None = None
    chunk_overlap: NonNegativeInt = OVERLAP_WORDS

    def __post_init__(self) -> None:
        if self.chunk_words is not None and self.chunk_overlap >= self.chunk_words:
            raise UserError(f"chunk_overlap must be below chunk_words {self.chunk_words}, got {self.chunk_overlap}.")

    @property
    def options(self) -> dict[str, Any]:
        """The options that count, for an index's recipe too."""
        length = {"chunk_words": self.chunk_words, "chunk_overlap": self.chunk_overlap}
        return {"cascade": self.cascade, **(length if self.chunk_words else {"max_words": self.max_words})}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
