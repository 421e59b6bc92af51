"""The folder that keeps the conversions of documents, so that an unchanged document is not read again.

    documents.json                   which folder of documents it is of
    report.md, report.jsonl          what each file gave in the last run
    read/SHA256/READING/             one document in one way of reading (`documents.stored_document`)
        segments-....jsonl           its segments as passages, `write_rows`: their counts, then one passage a line
        failure.json                 in the place of all this: why it cannot be read

SHA256 is that of the document's content: a document that is renamed or copied is not read again."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import read_json, write_json
from common.locks import exclusive
from common.outputs import OutputFolder, known_files, manifest_or_none
from common.records import Passage
from common.sealed_json import fingerprint
from documents.folder.options import ConversionOptions, Cutting, ReadingLimits, code_version, versions
from documents.reading.file_types import READING_VERSIONS, FileType
from documents.reading.linked_images import LinkedImages
from documents.stored_document import DOCUMENT, load_about, read_rows

HEAD, REPORT, REPORT_LINES = "documents.json", "report.md", "report.jsonl"
FORMAT = 2  # of the folder; increase it when what is stored changes its meaning
_READ, _FAILURE = "read", "failure.json"
_DIGITS = 32  # of a SHA-256 in names
KEPT = OutputFolder(
    "`infer.py index --documents`",
    "a folder of what was read of documents",
    known_files(HEAD, REPORT, REPORT_LINES, f"{_READ}/*", "llm_replies.jsonl"),
)


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """The stored conversion of one document.

    Args:
        folder: Of the document in this way of reading.
        reading: The way.
        segments: File of its segments, cut in one way under one name.
        limits: CPU time and memory that reading it may take: a document that took more is tried again with others.
    """

    folder: Path
    reading: dict[str, Any]
    segments: Path
    limits: dict[str, float]

    @property
    def failure(self) -> str:
        """Why the document cannot be read, as far as is known.

        Empty if it can, or was not tried within these limits.
        """
        known = manifest_or_none(self.folder / _FAILURE) or {}
        return known.get("why", "") if known.get("limits") in (None, self.limits) else ""

    def fail(self, why: str, by_limits: bool) -> None:
        """Record that the document cannot be read; `by_limits`: for too much time or memory."""
        write_json(
            self.folder / _FAILURE, {"why": why, "limits": self.limits if by_limits else None, "reading": self.reading}
        )

    def about(self, linked: LinkedImages) -> dict[str, Any] | None:
        """The facts on the document and its segments; None if they are missing, damaged or out of date.

        Args:
            linked: Reads the images that the document links to.
        """
        try:
            known = load_about(self.folder) | read_rows(self.segments)[0]
            return known if linked.unchanged(known["linked"]) else None
        except (OSError, ValueError, KeyError):
            return None

    def passages(self) -> Iterator[Passage]:
        """The segments, after `about` has found them whole."""
        return map(Passage.from_row, read_rows(self.segments)[1:])


class ConversionCache:
    """Such a folder.

    Args:
        folder: The folder; it need not exist.
        documents: The folder of documents.
        reading: How documents are read.
        cutting: How they are cut into segments.
        limits: What reading may take.
    """

    def __init__(
        self, folder: Path, documents: Path, reading: ConversionOptions, cutting: Cutting, limits: ReadingLimits
    ) -> None:
        self.folder, self.documents = folder, documents.resolve()
        self.limits = {"seconds": limits.seconds, "mebibytes": limits.mebibytes}
        self._common: dict[str, Any] = {"options": reading.recipe, "format": FORMAT}
        if reading.passes:
            self._common["passes"] = {each.name: each.version for each in reading.passes}
        self.cutting = cutting.options
        self._cut = [self.cutting, code_version(Path(__file__).parent.with_name("segments").glob("*.py"))]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing the folder.

        Raises:
            UserError: If another process is, or the folder is something else, or of other documents.
        """
        KEPT.check(self.folder)
        with exclusive(self.folder, "Wait for it, or give another --reading.document_cache."):
            KEPT.check(self.folder)
            if (self.folder / HEAD).is_file():
                other = Path(str(read_json(self.folder / HEAD, f"Remove {self.folder}.").get("documents")))
                if other != self.documents and other.is_dir():
                    raise UserError(
                        f"{self.folder} keeps what was read of {other}. Give another --reading.document_cache for "
                        f"{self.documents}."
                    )
            write_json(self.folder / HEAD, {"format": FORMAT, "documents": str(self.documents)})
            yield

    def entry(self, sha256: str, kind: FileType, name: str) -> CachedDocument:
        """The place of a document's conversion, which may not exist yet.

        Args:
            sha256: Of its content.
            kind: Its type: a change of how another type is read leaves it alone.
            name: Its name, which its segments bear.
        """
        reading = {**self._common, "versions": versions(kind)}
        folder = self.folder / _READ / sha256[:_DIGITS] / fingerprint(reading)[:12]
        segments = folder / f"segments-{fingerprint([name, *self._cut])[:12]}.jsonl"
        return CachedDocument(folder, reading, segments, self.limits)

    def prune(self, current: Collection[str]) -> None:
        """Delete the conversions of documents that are gone, and those by earlier versions of the code.

        Args:
            current: SHA-256 digests of the documents that are there.
        """
        names = {digest[:_DIGITS] for digest in current}
        for document in sorted((self.folder / _READ).glob("*")):
            if document.name not in names:
                shutil.rmtree(document, ignore_errors=True)
                continue
            for way in document.iterdir():
                if self._is_outdated(way):
                    shutil.rmtree(way, ignore_errors=True)

    def _is_outdated(self, way: Path) -> bool:
        try:
            failed = (way / _FAILURE).exists()
            reading = (read_json(way / _FAILURE, "") if failed else load_about(way)).get("reading", {})
        except (OSError, ValueError, KeyError, UserError):
            return failed or not (way / DOCUMENT).exists()
        known = reading.get("versions", {})
        kind = known.get("type")  # without one, it is of a release that recorded no version: 0
        return kind not in READING_VERSIONS or (reading.get("format"), known) != (FORMAT, versions(kind))
