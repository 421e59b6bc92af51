"""The text of a word from the characters that draw it.

Accents composed, ligatures as letters, invisible characters left out.
"""

import unicodedata
from collections.abc import Sequence

from documents.raised import raised

_SCRIPT, _RAISED = 0.86, 0.2  # of the text's font size: the size of raised text, and how high it stands
SOFT_HYPHEN = "\xad"
_ACCENTS = {  # accents drawn before the letter they belong to, as TeX does: the combining marks
    "`": "\u0300", "\u00b4": "\u0301", "^": "\u0302", "\u02c6": "\u0302", "~": "\u0303", "\u02dc": "\u0303",
    "\u00af": "\u0304", "\u02d8": "\u0306", "\u02d9": "\u0307", "\u00a8": "\u0308", "\u02da": "\u030a",
    "\u02c7": "\u030c", "\u00b8": "\u0327",
}  # fmt: skip
_BULLETS = dict.fromkeys(map(ord, "\uf0b7\uf0a7\uf0d8\uf0fc\uf0a8\uf076\uf06c\uf06e"), "•")  # of symbol fonts
_NO_TEXT = ("Cc", "Co", "Cn", "Cs")  # categories: control, private use, unassigned, surrogates


def is_raised(size: float, height: float, text_size: float) -> bool:
    """Whether a part of a line is raised.

    Args:
        size: Of its font.
        height: Of its baseline above that of the text.
        text_size: Of the text's font.
    """
    return size < _SCRIPT * text_size and height > _RAISED * text_size


def superscript(text: str, before: str = "") -> str:
    """Raised text in its place, as `raised` writes it; words, and the A of LATEX, stay as they are."""
    if len(text) > 2 and text != "TM" and not any(char.isdecimal() for char in text):
        return text
    shown = raised(text, before)
    return text if shown[:1] == "^" and text.isupper() else shown


def word_text(letters: Sequence[tuple[str, float, float]]) -> str:
    """The text of a word; a soft hyphen stays only at its end.

    Args:
        letters: Each character with the left and right edges of its ink, in the order of the file.
    """
    parts: list[str] = []
    for at, (letter, left, right) in enumerate(letters):
        before, start, end = letters[at - 1] if at else ("", 0.0, 0.0)
        over = start < right and end > left and start - left < right - left  # the accent is drawn above the letter
        if over and before in _ACCENTS and letter.isalpha():
            parts[-1] = letter + _ACCENTS[before]
        else:
            parts.append(letter)
    text = "".join(parts)
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").translate(_BULLETS)
    text = "".join(unicodedata.normalize("NFKC", char) if "\ufb00" <= char <= "\ufb06" else char for char in text)
    text = unicodedata.normalize("NFC", text)
    text = text[:-1].replace(SOFT_HYPHEN, "") + text[-1:]
    shown = (char for char in text if char == SOFT_HYPHEN or unicodedata.category(char) not in ("Cf", *_NO_TEXT))
    return "".join(shown)
