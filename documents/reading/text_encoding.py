"""Bytes of text files as text: by byte-order mark, by what a page says of itself, as UTF-8 or by a guess.  Never fails.

A page is decoded as browsers do it (https://html.spec.whatwg.org/#determining-the-character-encoding).
"""

import codecs
import re
from unicodedata import category

from documents.left_out import LeftOut
from documents.reading.encoding_guess import guessed
from documents.reading.web_encodings import web_encoding

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD_BYTES = 16_384  # in which a page says its encoding, before its body
_TAG = re.compile(
    rb"""<!--.*?(?:-->|\Z) | <body\b.* | <meta(?P<meta>(?:[\s/](?:"[^"]*"|'[^']*'|[^"'>])*)?)> """
    rb"""| </?[a-z](?:"[^"]*"|'[^']*'|[^"'>])*> | <[!?/][^>]*>""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(rb"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?""")
_CHARSET = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_XML = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")
_SHIFTED = re.compile(rb"\x1b\$[@B]")  # to Japanese characters, in ISO-2022-JP
_ASCII = re.compile(r"[\n\r\t -~]")
_NO_TEXT = ("Cc", "Cn", "Co", "Cs")  # categories: control, unassigned, private use, surrogates
_ALL_ASCII = 0.4  # of the bytes are at least NUL in UTF-16 that is ASCII
_FEW = 0.1  # of a text's bytes that are not ASCII: so many may be broken for it to be UTF-8
_BROKEN = "\ufffd"


def decoded(data: bytes, left_out: LeftOut, is_html: bool = False) -> str:
    """The text without byte-order mark and NULs, line ends as line feeds.

    Args:
        data: The file's bytes; those that are invalid become U+FFFD.
        left_out: Gets a line if the encoding is a guess, and one if the text has U+FFFD.
        is_html: Whether the text may declare its encoding, as HTML and XML do.
    """
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", _utf_16(data)))
    encoding = encoding or (_declared(data[:_HEAD_BYTES]) if is_html else None)
    encoding = encoding or _found(data, left_out)
    text = data.removeprefix(mark).decode(encoding, "replace")
    if broken := text.count(_BROKEN):
        left_out.append(f"characters that cannot be read in {encoding}: {broken:,} x {_BROKEN}")
    return text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")


def as_utf_8(head: bytes) -> bytes:
    """The beginning of a text in UTF-16 as UTF-8, that of others as it is."""
    encoding = next((name for mark, name in _MARKS[1:] if head.startswith(mark)), None) or _utf_16(head)
    return head.decode(encoding, "ignore").encode() if encoding else head


def _utf_16(data: bytes) -> str | None:
    """The kind of UTF-16 of a text without byte-order mark: in its ASCII characters every other byte is NUL."""
    head = data[:_HEAD_BYTES]
    nuls = head.count(b"\x00")
    if not nuls or (nuls < _ALL_ASCII * len(head) and head.isascii()):
        return None
    texts = {name: head[: len(head) // 2 * 2].decode(name, "replace")[:-1] for name in ("utf-16-le", "utf-16-be")}
    counts = {name: len(_ASCII.findall(text)) for name, text in texts.items()}
    name = max(counts, key=counts.__getitem__)
    is_text = all(char in "\t\n\r\f" or category(char) not in _NO_TEXT for char in texts[name])
    return name if is_text and counts[name] > 4 * (sum(counts.values()) - counts[name]) else None


def _declared(head: bytes) -> str | None:
    """The encoding that the beginning of a page says: the first known one of its meta elements, or of its XML."""
    for tag in _TAG.finditer(head):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(tag["meta"] or b""):
            attributes.setdefault(name.lower(), b"".join(values))
        label = attributes.get(b"charset")
        if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
            said = _CHARSET.search(attributes.get(b"content", b""))
            label = said and b"".join(part or b"" for part in said.groups())
        if label and (encoding := web_encoding(label.decode("latin-1"))):
            return encoding
    said = _XML.match(head)
    return web_encoding(said[1].decode("latin-1")) if said else None


def _found(data: bytes, left_out: LeftOut) -> str:
    """The encoding of a text that does not say it."""
    if data.isascii() and not _SHIFTED.search(data):
        return "utf-8"
    text = data.decode("utf-8", "replace")
    not_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if not data.isascii() and text.count(_BROKEN) <= _FEW * not_ascii:
        return "utf-8"
    guess = "iso-2022-jp-ext" if data.isascii() else guessed(data)
    how = "by a guess" if guess else "as its encoding is unclear"
    left_out.append(f"read as {guess or 'windows-1252'} {how}: save it as UTF-8 if its letters are wrong")
    return guess or "windows-1252"
