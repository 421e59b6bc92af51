"""Words that a line's end cuts: the hyphen is left out or kept, as the document itself writes the word elsewhere."""

import re
from collections.abc import Container, Iterable

_END = re.compile(r"([^\W\d_](?:[^\W\d_]|-)*)([-\u2010\xad])$")
_START = re.compile(r"[^\W\d_](?:[^\W\d_]|-)*")
_END_OF_NUMBER = re.compile(r"\d[-\u2010]$")
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|-)*[^\W\d_]")

_LONGEST = 100  # characters of a word
_LINKS = {*"eiouy", "and", "or", "und", "oder", "sowie", "bis", "et", "ou", "och", "og", "eller", "en", "of"}
_LONG_LINK = 3  # letters from which on a link need not stand elsewhere in the document
_MIN_LETTERS = 4  # of both parts of a compound, which no syllables have
_LONG = 6  # letters of a word of the document that a compound begins with, whatever its second part is
_COMPOUND = re.compile(  # words that have a hyphen of their own wherever they stand
    r"(?:well|self|ill)-(?!(?:less|ness|hood)\b)\w{4,}|so-called|(?:long|short|medium|mid)-(?:term|range|lived|standing)|"
    r"(?:real|full|part|run)-time|(?:high|low|top|mid|entry)-(?:level|quality|speed|cost|power|pressure|voltage|"
    r"performance|resolution|frequency|temperature)|\w{4,}-(?:friendly|based|oriented|specific|driven)"
)


def vocabulary(texts: Iterable[str]) -> set[str]:
    """The words of lines, in small letters, but for those that a line's end may cut."""
    found: set[str] = set()
    cut = False
    for text in texts:
        words = _WORD.findall(text.casefold())
        was_cut, cut = cut, _END.search(text) is not None
        found.update(words[was_cut : len(words) - cut])
    return found


def joined(text: str, line: str, words: Container[str]) -> str:
    """A text and the line after it.

    A hyphen between a letter and a small letter is left out. It stays if the document has not the word without it, but
    either with it, or both parts as words of their own, or if it is a compound that always has it. It stays, with a
    blank, before "and", "or" and the like, and without one behind a figure. A soft hyphen is always left out.
    """
    end, start = _END.search(text[-_LONGEST:]), _START.match(line)
    if _END_OF_NUMBER.search(text) and line[:1].isalnum() and (start is None or start[0] not in _LINKS):
        return text + line
    if end is None or start is None:
        return f"{text.rstrip(chr(0xAD))} {line}"
    without, hyphenated = (end[1] + start[0]).casefold(), f"{end[1]}-{start[0]}".casefold()
    parts = [part.casefold() for part in (end[1].split("-")[-1], start[0].split("-")[0])]
    goes_on = "-" in end[1] and parts[0] in words and "".join(parts) not in words  # state-of-the-art
    is_link = start[0] in _LINKS and (len(start[0]) >= _LONG_LINK or start[0] in words)
    if end[2] != "\xad" and is_link and without not in words:
        return f"{text} {line}"
    known = [len(part) >= _MIN_LETTERS and part in words for part in parts]
    long = known[0] and len(parts[0]) >= _LONG and len(parts[1]) >= _MIN_LETTERS
    compound = goes_on or hyphenated in words or all(known) or long or _COMPOUND.fullmatch(hyphenated) is not None
    keeps = not line[0].islower() or (compound and without not in words)
    if end[2] != "\xad" and (keeps or (len(end[1]) == 1 and without not in words)):
        return text + line
    return text[:-1] + line
