"""The entrance: a folder of documents as a corpus.

Changed documents are read, several at a time, and all segments are passages.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.progress import Progress, track
from common.records import Passage
from common.threads import as_completed
from documents.folder.cache import CachedDocument, ConversionCache
from documents.folder.document_reader import DocumentReader
from documents.folder.listing import check_folder, list_files
from documents.folder.options import ConversionOptions, Cutting, DocumentPass, ReadingLimits
from documents.folder.passes import convert
from documents.folder.report import DocumentRow, say_summary, write_report
from documents.reading.any_file import check_packages
from documents.reading.file_types import READING_VERSIONS, named_type
from documents.stored_document import IMAGES


def read_folder(
    folder: Path,
    document_cache: Path,
    outline: bool = True,
    cutting: Cutting | None = None,
    limits: ReadingLimits | None = None,
    strict: bool = False,
    passes: Sequence[DocumentPass] = (),
) -> "DocumentFolder":
    """A folder of PDF, HTML, Word and Markdown files as a corpus; files are read when its passages are asked for.

    Args:
        folder: The folder of documents, with the folders in it.
        document_cache: Folder that keeps what is read, so that only changed documents are read again.
        outline: Whether the outline (bookmarks) of a PDF file is used to find its headings.
        cutting: How documents are cut into segments.
        limits: What reading may take.
        strict: Whether a document that cannot be read ends the work.
        passes: Change what was read, one after the other: a language model, a captioning model.

    Raises:
        UserError: If a folder is not one, or a package is missing that reads files with these suffixes.
        MissingInputError: If the folder of documents does not exist.
    """
    cutting, limits = cutting or Cutting(), limits or ReadingLimits()
    check_folder(folder)
    for kind in {named_type(file.name) for file in list_files(folder) if not file.left_out}:
        if kind is not None:
            check_packages(kind)
    readings = [ConversionOptions(outline, tuple(passes[:count])) for count in range(len(passes) + 1)]
    caches = [ConversionCache(document_cache, folder, reading, cutting, limits) for reading in readings]
    return DocumentFolder(folder, caches, passes, limits, strict, {**readings[-1].recipe, **cutting.options})


@dataclass
class DocumentFolder:
    """The result of `read_folder`."""

    folder: Path
    caches: Sequence[ConversionCache]  # what keeps the documents as they were read, then as each pass changed them
    passes: Sequence[DocumentPass]
    limits: ReadingLimits
    strict: bool
    recipe: dict[str, Any]  # how documents are read and cut into segments, for an index's recipe; JSON types only
    versions: dict[str, int] = field(default_factory=dict)  # of how each type of document is read, once they are
    _images: dict[str, Path] = field(default_factory=dict)  # by file name, of the segments that were given

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from writing to the cache, in a `with` block; see `ConversionCache.locked`."""
        return self.caches[0].locked()

    def passages(self) -> Iterator[Passage]:
        """Read the documents, write the report, and give the segments, in order of the documents' names.

        Raises:
            DataError: If no document gives a segment, or `strict` and one cannot be read.
            UserError: If the folder cannot be listed, or the packages that read documents are missing.
            ArtifactError: If writing to disk fails.
        """
        rows, entries = self._read()
        self.versions.update({row.kind: READING_VERSIONS[row.kind] for row in rows if row.sha256})
        cache = self.caches[0]
        write_report(cache.folder, self.folder, rows)
        say_summary(cache.folder, self.folder, rows)
        self._check(rows)
        cache.prune({row.sha256 for row in rows if row.sha256})
        for row in rows:
            if row.name in entries:
                yield from self._passages_of(entries[row.name], row.copies)

    def _check(self, rows: list[DocumentRow]) -> None:
        failed = [row for row in rows if row.failed]
        first = f"; the first: {failed[0].name}: {failed[0].why.rstrip('.')}" if failed else ""
        if all(row.why or row.copy_of for row in rows):
            raise DataError(
                f"{self.folder} holds no document that can be indexed: {len(rows):,} files, {len(failed):,} documents "
                f"that could not be read{first}. PDF, HTML, DOCX and Markdown files are read."
            )
        if self.strict and failed:
            raise DataError(
                f"{len(failed):,} documents of {self.folder} could not be read{first}. Omit --reading.strict to "
                "index the others."
            )

    def _passages_of(self, entry: CachedDocument, copies: list[str]) -> Iterator[Passage]:
        for passage in entry.passages():
            about = passage.metadata or {}
            if "image" in about:
                self._images[str(about["image"])] = entry.folder / IMAGES / str(about["image"])
            yield replace(passage, metadata=about | {"copies": copies}) if copies else passage

    def write_images(self, folder: Path) -> None:
        """Write the images of the segments that `passages` gave into a new folder."""
        folder.mkdir()
        for name, path in sorted(self._images.items()):
            shutil.copyfile(path, folder / name)

    def _read(self) -> tuple[list[DocumentRow], dict[str, CachedDocument]]:
        """The result of each file; and the segments by document, of those that have any."""
        rows = [DocumentRow(file.name, file.path, file.left_out) for file in list_files(self.folder)]
        reader = DocumentReader(self.folder, self.caches[0], self.limits)
        different = self._different(rows, reader)
        entries = self._read_all(reader, different, "reading documents")
        for each, cache in zip(self.passes, self.caches[1:], strict=True) if entries else ():
            different = [row for row in different if row.name in entries]
            convert(each, [(entries[row.name], cache.entry(row.sha256, row.kind, row.name)) for row in different])
            reader = DocumentReader(self.folder, cache, self.limits)
            entries = self._read_all(reader, different, "cutting documents")
        return rows, entries

    def _read_all(self, reader: DocumentReader, rows: list[DocumentRow], what: str) -> dict[str, CachedDocument]:
        """The segments by document, of those that have any."""
        entries: dict[str, CachedDocument] = {}
        with Progress(what, len(rows)) as progress, closing(reader):
            for row, entry in as_completed(lambda row: (row, reader.read(row)), rows, self.limits.processes):
                if entry is not None:
                    entries[row.name] = entry
                progress.initial += not row.read_now  # such a row takes no time: none left is estimated from it
                progress.update()
        return entries

    @staticmethod
    def _different(rows: list[DocumentRow], reader: DocumentReader) -> list[DocumentRow]:
        """The documents that differ in content: of equal ones the first by name."""
        first: dict[str, DocumentRow] = {}
        for row in track(rows, len(rows), "looking for changed files"):
            if row.why or not reader.identify(row):
                continue
            same = first.setdefault(row.sha256, row)
            if same is not row:
                row.copy_of = same.name
                same.copies.append(row.name)
        return list(first.values())
