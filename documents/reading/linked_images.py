"""Images that HTML and Markdown files link to.

Read only from within the folder of documents, and remembered by their content.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from documents.reading.image_files import MAX_BYTES


class LinkedImages:
    """Reads the images that one document links to.

    Args:
        document: The document's file.
        root: The folder of documents: nothing outside it is read.
    """

    def __init__(self, document: Path, root: Path) -> None:
        self._folder, self._root = document.parent, root.resolve()
        self.digests: dict[str, str] = {}  # SHA-256 of what each link gave; empty where it gave nothing

    def __call__(self, link: str) -> bytes | None:
        """The image's file; None if it is outside the folder of documents, missing, too large or no file."""
        data = self._read(link)
        self.digests[link] = "" if data is None else hashlib.sha256(data).hexdigest()
        return data

    def unchanged(self, digests: Mapping[str, str]) -> bool:
        """Whether all links give what they gave."""
        for link in digests:
            self(link)
        return self.digests == digests

    def _read(self, link: str) -> bytes | None:
        try:
            address = urlsplit(link)
            if address.scheme or address.netloc or not address.path:
                return None
            for path in dict.fromkeys((address.path, unquote(address.path))):
                file = (self._folder / path).resolve()
                if file.is_relative_to(self._root) and file.is_file() and file.stat().st_size <= MAX_BYTES:
                    return file.read_bytes()
        except (OSError, ValueError, RuntimeError):  # an address that is none, a loop of links, no permission
            return None
        return None
