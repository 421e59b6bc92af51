"""Words that a line's end cuts: the hyphen is left out or kept, as the document itself writes the word elsewhere."""

import re
from collections.abc import Container, Iterable

_END = re.compile(r"([^\W\d_](?:[^\W\d_]|-)*)([-\u2010\xad])$")
_START = re.compile(r"[^\W\d_](?:[^\W\d_]|-)*")
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|-)*[^\W\d_]")

_LONGEST = 100  # characters of a word
_MIN_LETTERS = 4  # of both parts of a compound, which no syllables have


def vocabulary(texts: Iterable[str]) -> set[str]:
    """The words of lines, in small letters, but for those that a line's end may cut."""
    found: set[str] = set()
    for text in texts:
        words = _WORD.findall(text.casefold())
        found.update(words[:-1] if _END.search(text) else words)
    return found


def joined(text: str, line: str, words: Container[str]) -> str:
    """A text and the line after it.

    A hyphen between a letter and a small letter is left out. It stays if the document has not the word without it, but
    either with it, or both parts as words of their own. A soft hyphen is always left out.
    """
    end, start = _END.search(text[-_LONGEST:]), _START.match(line)
    if end is None or start is None:
        return f"{text.rstrip(chr(0xAD))} {line}"
    without, hyphenated = (end[1] + start[0]).casefold(), f"{end[1]}-{start[0]}".casefold()
    parts = [part.casefold() for part in (end[1], start[0])]
    compound = hyphenated in words or all(len(part) >= _MIN_LETTERS and part in words for part in parts)
    keeps = not line[0].islower() or (compound and without not in words)
    if end[2] != "\xad" and (keeps or (len(end[1]) == 1 and without not in words)):
        return text + line
    return text[:-1] + line
