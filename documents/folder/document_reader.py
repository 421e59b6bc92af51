"""Reads the documents of a folder in processes that can be killed, or takes them from the cache."""

from pathlib import Path
from typing import Any

from common.errors import ArtifactError, DataError, UserError
from common.killable import CallError, Killable
from documents.folder.cache import CachedDocument, ConversionCache
from documents.folder.content import NoDocumentError, digest
from documents.folder.options import ReadingLimits
from documents.folder.report import DocumentRow
from documents.reading.file_types import named_type
from documents.reading.linked_images import LinkedImages

_TRIES = 3  # for a document that changes while it is read


class DocumentReader:
    """Reads documents, from as many threads as it has processes; close it at the end.

    Args:
        root: The folder of documents.
        cache: Keeps what is read.
        limits: What reading may take.
    """

    def __init__(self, root: Path, cache: ConversionCache, limits: ReadingLimits) -> None:
        self._root, self._cache, self._limits = root.resolve(), cache, limits
        function = "documents.folder.worker:convert"
        self.processes = Killable(function, limits.processes, limits.seconds, limits.mebibytes)
        self.close = self.processes.close

    def identify(self, row: DocumentRow) -> bool:
        """Fill in the digest of a file's content; False, and why in the row, if it is not to be read."""
        try:
            row.sha256, row.kind = digest(row.path, row.name, self._limits.mebibytes)
        except NoDocumentError as error:
            row.fail(str(error), is_document=False)
        except DataError as error:
            row.fail(str(error), named_type(row.name) is not None)
        return not row.why

    def read(self, row: DocumentRow) -> CachedDocument | None:
        """The place of the segments of a document that `identify` has accepted; None if it cannot be read, or has none.

        Fills in what the document gave, or why nothing.

        Raises:
            UserError: If no document of its type can be read, as its packages are missing.
            ArtifactError: If writing to disk fails.
        """
        linked = LinkedImages(row.path, self._root)
        for _ in range(_TRIES):
            entry = self._cache.entry(row.sha256, row.kind, row.name)
            about, why = entry.about(linked), entry.failure
            if about is None and not why:
                row.read_now = True
                reply = self._reply(row, entry)
                if "changed" in reply:
                    if not self.identify(row):
                        return None
                    continue
                about, why = entry.about(linked), reply.get("why", "")
            if about is None:
                row.fail(why or "what was read of it was lost again", named_type(row.name) is not None)
                return None
            row.about = about
            if not sum(about["segments"].values()):
                row.fail("; ".join(["nothing to index", *about["left_out"][:3]]))
                return None
            return entry
        row.fail("it changes while it is read")
        return None

    def _reply(self, row: DocumentRow, entry: CachedDocument) -> dict[str, Any]:
        """The reply of a process; its verdict on the document's content is kept."""
        asked: dict[str, Any] = {"file": str(row.path), "root": str(self._root), "name": row.name}
        asked |= {"sha256": row.sha256, "folder": str(entry.folder), "segments": str(entry.segments)}
        asked |= {"reading": entry.reading, "cutting": self._cache.cutting}
        try:
            reply: dict[str, Any] = self.processes.submit(asked).result()
        except CallError as error:
            why = self._why_lost(error)
            entry.fail(why, by_limits=True)
            return {"why": why}
        if "unwritable" in reply:
            raise ArtifactError(reply["unwritable"])
        if "error" in reply:
            raise UserError(reply["error"])
        if reply.get("always"):
            entry.fail(reply["why"], by_limits=False)
        return reply

    def _why_lost(self, error: CallError) -> str:
        kind, why = error.args
        if kind == "slow":
            return f"takes more than {self._limits.seconds:g} s to read (--reading.seconds)"
        if kind == "large":
            return f"takes more than {self._limits.mebibytes} MiB of memory to read (--reading.mebibytes)"
        return f"the process that read it ended ({why})"
