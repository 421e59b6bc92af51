"""Texts of web pages by trafilatura, in processes of their own with limits on time and memory."""

import os

import httpx2

from common.errors import UserError
from common.killable import CallError, Killable
from harness.runtime.services import valid_text
from harness.web.pages import HTML, kind_of
from harness.web.transport import FetchError

SECONDS, MEBIBYTES = 10.0, 512  # CPU time and address space that one page may take; most take 0.1 s and 60 MB


def extractor(concurrency: int, seconds: float = SECONDS, mebibytes: int = MEBIBYTES) -> Killable:
    """The processes that extract texts, for so many threads."""
    processes = min(concurrency, os.cpu_count() or 1, 4)
    return Killable("harness.web.page_text:page_text", processes, seconds, mebibytes)


def extracted(extractor: Killable, page: httpx2.Response) -> str:
    """The main text of a page, its paragraphs as lines; empty if it has none.

    Raises:
        FetchError: If the page takes too much time or memory, or cannot be parsed.
        UserError: If trafilatura is installed and cannot be imported.
    """
    try:
        text = extractor.submit(page.content, page.charset_encoding or "", kind_of(page) in HTML).result()
    except CallError as error:
        kind, why = error.args
        raise FetchError(
            f"its text cannot be extracted ({why})"
            if kind == "raised"
            else "its text takes too much time or memory to extract"
        ) from error
    if text is None:
        raise UserError(
            "trafilatura is installed, but its import fails; python -c 'import trafilatura' says why. Install it "
            "again: pip install --force-reinstall trafilatura, or set read_pages to false."
        )
    return valid_text(text)
