"""Reads the documents of a folder one by one in isolated processes, or takes them from where they are kept."""

import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from common.errors import DataError, UserError
from harness.documents.folder.cache import ConversionCache, Entry
from harness.documents.folder.content import NoDocumentError, digest, is_named_document
from harness.documents.folder.listing import File
from harness.documents.folder.options import Limits
from harness.documents.folder.report import Row
from harness.documents.reading.linked_images import LinkedImages
from harness.runtime.isolated_process import IsolatedProcesses, ProcessEndedError
from harness.runtime.isolated_worker import OUT_OF_MEMORY

_WAIT = 4  # times the CPU time that a document may take: how long its answer is waited for
_TRIES = 3  # for a document that changes while it is read
_DOCLING_VARIABLES = (
    "HOME",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "XDG_CACHE_HOME",
    "DOCLING_ARTIFACTS_PATH",
)  # where its models are
_MOST_REQUESTS = 500  # to a process, whose memory may grow


class DocumentReader:
    """Reads documents; an asynchronous context manager.

    Args:
        root: The folder of documents.
        cache: Keeps what is read.
        limits: What reading may take.
    """

    def __init__(self, root: Path, cache: ConversionCache, limits: Limits) -> None:
        self._root, self._cache, self._limits = root.resolve(), cache, limits
        self._processes = IsolatedProcesses(
            "harness.documents.folder.worker",
            limits.processes,
            limits.seconds,
            limits.mebibytes,
            environment=_DOCLING_VARIABLES if cache.is_by_docling else (),
            most_requests=_MOST_REQUESTS,
        )

    async def __aenter__(self) -> Self:
        await self._processes.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._processes.__aexit__(kind, error, trace)

    def identify(self, file: File, row: Row) -> bool:
        """Fill in the digest of a file's content; False, and why in the row, if it is not to be read."""
        try:
            row.sha256 = digest(file, self._limits.mebibytes)
        except NoDocumentError as error:
            row.fail(str(error), is_document=False)
        except DataError as error:
            row.fail(str(error), is_named_document(file.name))
        return not row.why

    async def read(self, file: File, row: Row) -> Entry | None:
        """Where the segments of a document are, which `identify` has accepted; None if it cannot be read, or has none.

        Fills in what the document gave, or why nothing.

        Raises:
            UserError: If no document of its type can be read, as its packages are missing.
            ArtifactError: If writing to disk fails.
        """
        linked = LinkedImages(file.path, self._root)
        for _ in range(_TRIES):
            entry = self._cache.entry(row.sha256, row.name)
            about, why = entry.about(linked), entry.failure
            if about is None and not why:
                row.read_now = True
                reply = await self._reply(file, row, entry)
                if "changed" in reply:
                    if not self.identify(file, row):
                        return None
                    continue
                about, why = entry.about(linked), reply.get("why", "")
            if about is None:
                row.fail(why or "what was read of it was lost again", is_named_document(row.name))
                return None
            row.about = about
            if not sum(about["segments"].values()):
                row.fail("; ".join(["nothing to index", *about["left_out"][:3]]))
                return None
            return entry
        row.fail("it changes while it is read")
        return None

    async def _reply(self, file: File, row: Row, entry: Entry) -> dict[str, Any]:
        """What a process says; what it says of the document's content is kept."""
        asked: dict[str, Any] = {"file": str(file.path), "root": str(self._root), "name": row.name}
        asked |= {"sha256": row.sha256, "folder": str(entry.folder), "segments": str(entry.segments)}
        asked |= {"reading": self._cache.reading, "cutting": self._cache.cutting}
        try:
            reply = await self._ask(asked)
        except ProcessEndedError as error:
            why = self._why_ended(error)
            entry.fail(why, by_limits=True)
            return {"why": why}
        if "error" in reply:
            raise UserError(reply["error"])
        if reply.get("always"):
            entry.fail(reply["why"], by_limits=False)
        return reply

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A process's answer.  One that had read others before and ends is no proof: a new one tries once more."""
        seconds = _WAIT * self._limits.seconds
        try:
            return await self._processes.ask(asked, seconds=seconds)
        except ProcessEndedError as error:
            if not error.answered or error.late:
                raise
        return await self._processes.ask(asked, seconds=seconds)

    def _why_ended(self, error: ProcessEndedError) -> str:
        if error.late or error.code == -signal.SIGPROF:
            return f"takes more than {self._limits.seconds:g} s to read (--reading.seconds)"
        if error.code == OUT_OF_MEMORY:
            return f"takes more than {self._limits.mebibytes} MiB of memory to read (--reading.mebibytes)"
        ended = signal.Signals(-error.code).name if error.code < 0 else f"exit code {error.code}"
        return f"the process that read it ended ({ended})"
