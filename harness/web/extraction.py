"""Texts of web pages by trafilatura, in processes of their own with limits on time and memory."""

import os
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from common.errors import UserError
from harness.runtime.isolated_process import IsolatedProcesses, ProcessEndedError
from harness.runtime.services import valid_text
from harness.web.client import FetchError, Response
from harness.web.extraction_worker import CANNOT_IMPORT

HTML = ("text/html", "application/xhtml+xml")
KINDS = (*HTML, "text/plain")
PACKAGE, VERSIONS = "trafilatura", ">=2.3.1,<3"
SECONDS, MEBIBYTES = 10.0, 512  # CPU time and address space that one page may take; most take 0.1 s and 60 MB


def check_installed() -> None:
    """Raise UserError if the package that extracts texts is missing."""
    if find_spec(PACKAGE) is None:
        raise UserError(
            f"pages are read with {PACKAGE}, which is not installed: pip install '{PACKAGE}{VERSIONS}', or set "
            "read_pages to false to use the search service's snippets."
        )


def worker_count(concurrency: int) -> int:
    """Processes that extract at the same time."""
    return min(concurrency, os.cpu_count() or 1, 4)


class TextExtractor:
    """Extracts texts of pages; an asynchronous context manager, for one event loop.

    Processes start when they are needed.

    Args:
        workers: Processes at the same time.
        seconds: CPU time that a page may take.
        mebibytes: Of address space that a process may take.
    """

    def __init__(self, workers: int, seconds: float = SECONDS, mebibytes: int = MEBIBYTES) -> None:
        self.processes = IsolatedProcesses("harness.web.extraction_worker", workers, seconds, mebibytes)

    async def __aenter__(self) -> Self:
        await self.processes.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.processes.__aexit__(kind, error, trace)

    async def text(self, page: Response) -> str:
        """The main text of a page, its paragraphs as lines; empty if it has none.

        Raises:
            FetchError: If the page takes too much time or memory, or cannot be parsed.
            UserError: If trafilatura is installed and cannot be imported.
        """
        parameters = (part.partition("=") for part in page.headers.get("content-type", "").split(";")[1:])
        charset = next((value.strip("\"' ") for name, _, value in parameters if name.strip().lower() == "charset"), "")
        try:
            reply = await self.processes.ask({"charset": charset, "html": page.kind in HTML}, page.body)
        except ProcessEndedError as error:
            if error.code == CANNOT_IMPORT:
                raise UserError(
                    f"{PACKAGE} is installed, but its import fails; python -c 'import {PACKAGE}' says why. Install it "
                    f"again: pip install --force-reinstall '{PACKAGE}{VERSIONS}', or set read_pages to false."
                ) from error
            raise FetchError("its text takes too much time or memory to extract") from error
        if "error" in reply:
            raise FetchError(f"its text cannot be extracted ({reply['error']})")
        return valid_text(str(reply["text"]))
