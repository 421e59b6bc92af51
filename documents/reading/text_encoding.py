"""Bytes of text files as text: byte-order mark, declared encoding, UTF-8, or else Windows-1252.  Never fails."""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,500}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE
)
_HEAD_BYTES = 4096  # in which an encoding is declared


def decoded(data: bytes, is_html: bool = False) -> str:
    """The text without byte-order mark and NULs, line ends as line feeds.

    Args:
        data: The file's bytes; those that are invalid become U+FFFD.
        is_html: Whether the text may declare its encoding, as HTML and XML do.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _clean(data.removeprefix(mark).decode(encoding, "replace"))
    declared = _DECLARED.search(data[:_HEAD_BYTES]) if is_html else None
    if declared and not declared[1].lower().startswith((b"utf-8", b"utf8", b"utf-16", b"utf-32")):
        try:
            return _clean(data.decode(declared[1].decode("ascii"), "replace"))
        except (LookupError, UnicodeError):  # unknown, or no encoding of text
            pass
    try:
        return _clean(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _clean(data.decode("utf-8" if declared else "windows-1252", "replace"))


def _clean(text: str) -> str:
    return text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
