"""Texts of web pages by trafilatura, in processes of their own with limits on time and memory."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from common.errors import UserError
from harness.runtime.services import valid_text
from harness.web.client import FetchError, Response
from harness.web.extraction_worker import CANNOT_IMPORT

HTML = ("text/html", "application/xhtml+xml")
KINDS = (*HTML, "text/plain")
PACKAGE, VERSIONS = "trafilatura", ">=2.3.1,<3"
SECONDS, MEBIBYTES = 10.0, 512  # CPU time and address space that one page may take; most take 0.1 s and 60 MB
_EXIT_SECONDS = 5.0  # for a process that has closed its output to end
_PASSED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")  # of the environment: no keys


def check_installed() -> None:
    """Raise UserError if the package that extracts texts is missing."""
    if find_spec(PACKAGE) is None:
        raise UserError(
            f"pages are read with {PACKAGE}, which is not installed: pip install '{PACKAGE}{VERSIONS}', or set read_pages to false to "
            "use the search service's snippets."
        )


def worker_count(concurrency: int) -> int:
    """Processes that extract at the same time."""
    return min(concurrency, os.cpu_count() or 1, 4)


class TextExtractor:
    """Extracts texts of pages; an asynchronous context manager, for one event loop.  Processes start when they are needed.

    Args:
        workers: Processes at the same time.
        seconds: CPU time that a page may take.
        mebibytes: Of address space that a process may take.
    """

    def __init__(self, workers: int, seconds: float = SECONDS, mebibytes: int = MEBIBYTES) -> None:
        self._command = (
            sys.executable,
            "-P",
            str(Path(__file__).with_name("extraction_worker.py")),
            str(seconds),
            str(mebibytes),
        )
        self._free = asyncio.Semaphore(workers)
        self._idle: list[asyncio.subprocess.Process] = []
        self._running: set[asyncio.subprocess.Process] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in [*self._running]:
            await self._end(process)

    async def text(self, page: Response) -> str:
        """The main text of a page, its paragraphs as lines; empty if it has none.

        Raises:
            FetchError: If the page takes too much time or memory, or cannot be parsed.
            UserError: If trafilatura is installed and cannot be imported.
        """
        parameters = (part.partition("=") for part in page.headers.get("content-type", "").split(";")[1:])
        charset = next((value.strip("\"' ") for name, _, value in parameters if name.strip().lower() == "charset"), "")
        about = json.dumps({"charset": charset, "html": page.kind in HTML}).encode()
        async with self._free:
            process = self._idle.pop() if self._idle else await self._start()
            stdin, stdout = process.stdin, process.stdout
            assert stdin is not None
            assert stdout is not None
            try:
                for part in (about, page.body):
                    stdin.write(len(part).to_bytes(4, "big") + part)
                await stdin.drain()
                size = int.from_bytes(await stdout.readexactly(4), "big")
                reply = json.loads(await stdout.readexactly(size))
            except (asyncio.IncompleteReadError, OSError) as error:
                with suppress(TimeoutError):  # it is ending by itself; to kill it now could hide its exit code
                    await asyncio.wait_for(process.wait(), _EXIT_SECONDS)
                await self._end(process)
                if process.returncode == CANNOT_IMPORT:
                    raise UserError(
                        f"{PACKAGE} is installed, but its import fails; python -c 'import {PACKAGE}' says why. Install it again: pip "
                        f"install --force-reinstall '{PACKAGE}{VERSIONS}', or set read_pages to false."
                    ) from error
                raise FetchError("its text takes too much time or memory to extract") from error
            self._idle.append(process)
        if "error" in reply:
            raise FetchError(f"its text cannot be extracted ({reply['error']})")
        return valid_text(str(reply["text"]))

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED if name in os.environ},
        )
        self._running.add(process)
        return process

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End a process, whatever it is doing."""
        self._running.discard(process)
        if process.returncode is None:
            process.kill()
        await process.wait()
