"""Whether a file may be a document, and the digest of its content, without reading it into memory."""

import hashlib
import os
import stat
from pathlib import Path

from common.errors import DataError
from common.progress import in_bytes
from documents.reading.file_types import BLANK, FileType, file_type, named_type

NO_DOCUMENT = "no PDF, HTML, DOCX or Markdown file"
_BLOCK_BYTES = 2**20
_ZIP = b"PK\x03\x04"


class NoDocumentError(DataError):
    """The file is of another type."""


def digest(path: Path, name: str, max_mebibytes: int) -> tuple[str, FileType]:
    """SHA-256 of a file's content, and its type by its beginning.

    Args:
        path: The file.
        name: Its name in the folder of documents.
        max_mebibytes: A larger file is not read.

    Raises:
        NoDocumentError: If neither its name nor its beginning is that of a document.
        DataError: If it cannot be read, is empty or too large.
    """
    hashed = hashlib.sha256()
    try:
        # without waiting: the file may have become a pipe since it was listed
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise NoDocumentError("no regular file")
            block = opened.read(_BLOCK_BYTES)
            if named_type(name) is None and not _begins_like_document(block, name):
                raise NoDocumentError(NO_DOCUMENT)
            if about.st_size > max_mebibytes * 2**20:
                raise DataError(
                    f"has {in_bytes(about.st_size)}, more than the memory to read it ({max_mebibytes} MiB, "
                    "--reading.mebibytes)"
                )
            if not block.strip(BLANK) and about.st_size <= len(block):
                raise DataError("is empty")
            kind = _kind(block, name)
            while block:
                hashed.update(block)
                block = opened.read(_BLOCK_BYTES)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}") from error
    return hashed.hexdigest(), kind


def _kind(beginning: bytes, name: str) -> FileType:
    """The type of a document; of a broken one, or another file under a document's name, that of the name."""
    try:
        return "docx" if beginning.startswith(_ZIP) else file_type(beginning, name)
    except DataError:
        return named_type(name) or "text"


def _begins_like_document(beginning: bytes, name: str) -> bool:
    """Whether a file of another name may be a document.

    Text without a document's suffix, such as a program, is none.
    """
    if beginning.startswith(_ZIP):
        return True  # only the whole file shows what it holds
    try:
        return file_type(beginning, name) != "markdown"
    except DataError:
        return False
