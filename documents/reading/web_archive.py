"""Web pages saved with their images in one file (.mht, MHTML): the page and what it names."""

import re
from contextlib import suppress
from email import message_from_bytes
from urllib.parse import urljoin

from documents.left_out import LeftOut
from documents.reading.image_files import ImageLoader

_HEAD = re.compile(rb"[\w-]+:[ \t](?:[^\n]*\n)*?MIME-Version:", re.IGNORECASE)
_PAGE = re.compile(rb"^Content-Type:\s*(?:multipart/related|text/html)", re.IGNORECASE | re.MULTILINE)


def is_web_archive(head: bytes) -> bool:
    """Whether a file begins as a saved page does."""
    return _HEAD.match(head) is not None and _PAGE.search(head) is not None


def unpacked(data: bytes, load_image: ImageLoader | None, left_out: LeftOut) -> tuple[bytes, ImageLoader | None]:
    """The page as UTF-8, and a loader that knows the archive's images.

    Args:
        data: The file's bytes.
        load_image: Reads other images.
        left_out: Gets the pages in frames, which are not read.
    """
    parts = [part for part in message_from_bytes(data).walk() if not part.is_multipart()]
    pages = [part for part in parts if part.get_content_type() in ("text/html", "application/xhtml+xml")]
    if not pages:
        return b"", load_image
    for frame in pages[1:]:
        left_out.append(f"a page in a frame, {str(frame.get('Content-Location', 'unnamed'))[:80]}: not read")
    base = str(pages[0].get("Content-Location", ""))
    files: dict[str, bytes] = {}
    for part in parts:
        body = part.get_payload(decode=True)
        names = (str(part.get("Content-Location", "")), f"cid:{str(part.get('Content-ID', '')).strip('<> ')}")
        files |= {name: body for name in names if isinstance(body, bytes)}
    page, charset = pages[0].get_payload(decode=True), pages[0].get_content_charset()
    assert isinstance(page, bytes)
    if charset:
        with suppress(LookupError):  # of a name that no one knows: as the page says itself
            page = "\ufeff".encode() + page.decode(charset, "replace").encode()

    def load(source: str) -> bytes | None:
        inside = files.get(source) or files.get(urljoin(base, source))
        return inside or (load_image(source) if load_image else None)

    return page, load
