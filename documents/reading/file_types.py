"""Types of document files, told by their content: a suffix may be wrong."""

import re
from pathlib import PurePosixPath
from typing import Literal

from common.errors import DataError
from documents.reading.text_encoding import as_utf_8
from documents.reading.zip_bounds import check_zip

FileType = Literal["pdf", "docx", "html", "markdown", "text"]

SUFFIXES: dict[str, FileType] = {
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".mht": "html",
    ".mhtml": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "text",
}  # fmt: skip
READING_VERSIONS: dict[FileType, int] = {  # of how each type is read: raise one when a rule changes what is read of it;
    "pdf": 3, "docx": 1, "html": 1, "markdown": 1, "text": 1,  # what was kept without a version has 0
}  # fmt: skip
PACKAGES: dict[FileType, dict[str, str]] = {  # that read files of a type: the module of each, and its name
    "pdf": {"pypdfium2": "pypdfium2", "PIL": "pillow"}, "html": {"lxml": "lxml", "PIL": "pillow"},
    "docx": {"docx": "python-docx", "lxml": "lxml", "PIL": "pillow"},
    "markdown": {"markdown_it": "markdown-it-py", "lxml": "lxml", "PIL": "pillow"}, "text": {},
}  # fmt: skip
_ALLOWED = "Allowed are PDF, DOCX, HTML, Markdown and plain text"
_HEAD_BYTES = 2048
BLANK = b"\x00 \t\r\n"  # a file of these alone is empty
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--(?:(?!-->).)*-->\s*)*<(?:(?P<page>!doctype\s+html|html|head|body)|title|meta|h[1-6]|div|p|table|article|main|section)\b",
    re.IGNORECASE | re.DOTALL,
)
_WEB_ARCHIVE = re.compile(  # MHTML
    rb"(?:[\w-]+:[^\n]*\n|[ \t][^\n]*\n)*?Content-Type:\s*(?:multipart/related|text/html)", re.IGNORECASE
)
_OTHERS = {  # beginnings of files that are often taken for documents
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an encrypted or old Office file: save it as .docx without a password",
    b"{\\rtf": "an RTF file: save it as .docx",
    b"%!PS": "a PostScript file: convert it to PDF with ps2pdf",
    b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"GIF8": "a picture", b"II*\x00": "a picture",
    b"MM\x00*": "a picture", b"\x1f\x8b": "a gzip file: unpack it", b"BZh": "a bzip2 file: unpack it",
    b"\xfd7zXZ": "an xz file: unpack it", b"7z\xbc\xaf": "a 7z file: unpack it",
    b"Rar!": "a RAR file: unpack it", b"\x7fELF": "a program", b"AT&TFORM": "a DjVu file: convert it to PDF",
}  # fmt: skip
_MAX_CONTROL_SHARE = 0.05  # of control characters in a text


def file_type(data: bytes, name: str) -> FileType:
    """The type of a file by its content; text that is no HTML is Markdown, or plain text if it is named .txt.

    Markdown and plain text may begin with a tag: under these names only a whole page is HTML.

    Raises:
        DataError: If it is empty, or of another type.
    """
    head = data[:_HEAD_BYTES]
    if not data.strip(BLANK):
        raise DataError(f"{name} is empty.")
    if b"%PDF-" in data[:1024]:  # readers accept it after other bytes
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        parts = check_zip(data, name)
        if "word/document.xml" in parts:
            return "docx"
        raise DataError(f"{name} is a zip file that holds no Word document. {_ALLOWED}.")
    for beginning, kind in _OTHERS.items():
        if data.startswith(beginning):
            raise DataError(f"{name} is {kind}. {_ALLOWED}.")
    head = as_utf_8(head)
    named = named_type(name)
    begun, is_written = _HTML.match(head), named in ("markdown", "text")
    if not is_written and _WEB_ARCHIVE.match(head):
        raise DataError(f"{name} is a saved web page (.mht): save it as .html. {_ALLOWED}.")
    if (begun and (begun["page"] or not is_written)) or (named == "html" and b"<" in head):
        return "html"
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    if control > _MAX_CONTROL_SHARE * len(head):
        raise DataError(f"{name} is no text. {_ALLOWED}.")
    return "text" if named == "text" else "markdown"


def wrong_suffix(kind: FileType, name: str) -> str:
    """A line for the report if a file's name says another type than its content; else empty."""
    named = named_type(name)
    if named == kind or named is None:
        return ""
    return f"named {PurePosixPath(name).suffix}, read as {kind}"


def named_type(name: str) -> FileType | None:
    """The type that a file's suffix names; None for another one."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower())
