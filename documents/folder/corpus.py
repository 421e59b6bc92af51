"""A folder of documents as a corpus.

What has changed is read, several documents at a time, and all segments are passages.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from common.errors import DataError
from common.progress import Progress, track
from common.records import Passage
from documents.folder.cache import CachedDocument, ConversionCache
from documents.folder.document_reader import DocumentReader
from documents.folder.listing import File, check_folder, list_files
from documents.folder.options import ConversionOptions, Cutting, Model, ReadingLimits
from documents.folder.report import DocumentRow, say_summary, write_report
from documents.reading.any_file import check_packages
from documents.reading.file_types import named_type
from documents.stored_document import IMAGES
from harness.indexing.index_folder import Documents
from harness.runtime.concurrent_work import as_completed


class DocumentPass(Protocol):
    """Changes documents that were read, and keeps them beside what was read."""

    name: Model
    recipe: dict[str, Any]

    def convert(self, cache: ConversionCache, entries: list[tuple[CachedDocument, CachedDocument]]) -> None:
        """Write the second entry of each document from its first, where it is missing or outdated."""


class DocumentFolder:
    """A folder of documents as a corpus.

    Args:
        folder: The folder of documents.
        document_cache: Folder that keeps what is read.
        reading: How documents are read.
        cutting: How they are cut into segments.
        limits: What reading may take.
        strict: Whether a document that cannot be read ends the work.
        passes: Change what was read, one after the other: a language model, a captioning model.

    Raises:
        UserError: If a folder is not one, or a package is missing that reads files with these suffixes.
        MissingInputError: If the folder of documents does not exist.
    """

    def __init__(
        self,
        folder: Path,
        document_cache: Path,
        reading: ConversionOptions | None = None,
        cutting: Cutting | None = None,
        limits: ReadingLimits | None = None,
        strict: bool = False,
        passes: Sequence[DocumentPass] = (),
    ) -> None:
        reading, cutting, limits = reading or ConversionOptions(), cutting or Cutting(), limits or ReadingLimits()
        check_folder(folder)
        for kind in {named_type(file.name) for file in list_files(folder) if not file.left_out}:
            if kind is not None:
                check_packages(kind)
        self.folder, self.limits, self.strict = folder, limits, strict
        self.cache = ConversionCache(document_cache, folder, reading, cutting, limits)
        self.locked = self.cache.locked
        self._passes: list[tuple[DocumentPass, ConversionCache]] = []
        for each in passes:
            reading = reading.by(each.name, each.recipe)
            self._passes.append((each, ConversionCache(document_cache, folder, reading, cutting, limits)))
        self.documents = Documents(folder, {**reading.recipe, **cutting.recipe}, self._write_images)
        self._images: dict[str, Path] = {}  # by file name, of the segments that were given

    def passages(self) -> Iterator[Passage]:
        """Read the documents, write the report, and give the segments, in order of the documents' names.

        Raises:
            DataError: If no document gives a segment, or `strict` and one cannot be read.
            UserError: If the folder cannot be listed, or the packages that read documents are missing.
            ArtifactError: If writing to disk fails.
        """
        rows, entries = self._read()
        write_report(self.cache.folder, self.folder, rows)
        say_summary(self.cache.folder, self.folder, rows)
        self._check(rows)
        self.cache.prune({row.sha256 for row in rows if row.sha256})
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

    def _write_images(self, folder: Path) -> None:
        """Write the images of the segments that `passages` gave."""
        folder.mkdir()
        for name, path in sorted(self._images.items()):
            shutil.copyfile(path, folder / name)

    def _read(self) -> tuple[list[DocumentRow], dict[str, CachedDocument]]:
        """What each file gave; and the segments by document, of those that have any."""
        files = list_files(self.folder)
        rows = [DocumentRow(file.name, why=file.left_out) for file in files]
        reader = DocumentReader(self.folder, self.cache, self.limits)
        different = self._different(files, rows, reader)
        entries = self._read_all(reader, different, "reading documents")
        for each, cache in self._passes if entries else ():
            different = [(file, row) for file, row in different if row.name in entries]
            each.convert(cache, [(entries[row.name], cache.entry(row.sha256, row.name)) for _, row in different])
            reader = DocumentReader(self.folder, cache, self.limits)
            entries = self._read_all(reader, different, "cutting documents")
        return rows, entries

    def _read_all(
        self, reader: DocumentReader, documents: list[tuple[File, DocumentRow]], what: str
    ) -> dict[str, CachedDocument]:
        """The segments by document, of those that have any."""
        entries: dict[str, CachedDocument] = {}
        with Progress(what, len(documents)) as progress, closing(reader):
            read = as_completed(lambda job: (job[1], reader.read(*job)), documents, self.limits.processes)
            for row, entry in read:
                if entry is not None:
                    entries[row.name] = entry
                progress.advance() if row.read_now else progress.skip()
        return entries

    @staticmethod
    def _different(
        files: list[File], rows: list[DocumentRow], reader: DocumentReader
    ) -> list[tuple[File, DocumentRow]]:
        """The documents that differ in content: of equal ones the first by name."""
        first: dict[str, DocumentRow] = {}
        different = []
        for file, row in track(zip(files, rows, strict=True), len(files), "looking for changed files"):
            if row.why or not reader.identify(file, row):
                continue
            if row.sha256 in first:
                row.copy_of = first[row.sha256].name
                first[row.sha256].copies.append(row.name)
            else:
                first[row.sha256] = row
                different.append((file, row))
        return different
