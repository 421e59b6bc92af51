"""Numbers that headings begin with: 2.3, Chapter 4, Appendix B, IV., A.1, (a)."""

import re
from dataclasses import dataclass
from typing import Literal

from documents.written_numbers import written

Kind = Literal["part", "arabic", "roman", "letter", "small letter"]
_ROMAN = {written(number, "upperRoman"): number for number in range(1, 400)}
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_PART = r"part|teil|partie|parte"
_CHAPTER = r"chapter|kapitel|chapitre|cap[ií]tulo|section|appendix|anhang|annexe?|ap[eé]ndice"
_NAMED = re.compile(
    rf"(?P<name>{_PART}|{_CHAPTER})\s+(?P<value>\d{{1,3}}|[IVXLC]+|[A-Z](?:\.\d+)*|{'|'.join(_WORDS)})(?=$|[\s.:,\u2013\u2014-])[.:]?\s*",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"(?:§\s*)?(?P<value>(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+)[.):]?(?=\s+\S)\s+")
_ARABIC = re.compile(r"(?:§\s*)?(?P<value>\d{1,3})(?:[.):]|(?=\s))\s+(?=[^\W\d]|[\"\u201c\u2018'(])")
_ROMAN_NUMBER = re.compile(r"(?P<value>[IVXLC]+)[.:)]\s+(?=\S)")
_LETTER = re.compile(r"(?P<value>[A-Z])(?P<mark>[.:)]?)\s+(?=\S)")
_SMALL = re.compile(r"\(?(?P<value>[a-z])[.)]\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Number:
    """A heading's number.  `kind` is that of its first value: "A.1" is a letter of two values."""

    kind: Kind
    values: tuple[int, ...]
    length: int  # characters of the text that the number takes, with the blank after it
    named: bool = False  # whether it follows a word such as Chapter
    sure: bool = True  # whether it cannot be a word: "A Journal" may begin with one

    @property
    def depth(self) -> int:
        """How many values it has."""
        return len(self.values)


def roman(text: str) -> int | None:
    """The value of a Roman numeral of either case; None if it is none."""
    return _ROMAN.get(text.upper())


def number_of(text: str) -> Number | None:
    """The number that a text begins with."""
    if match := _NAMED.match(text):
        return _named(match)
    if match := _DOTTED.match(text):
        first, *rest = match["value"].split(".")
        values = (int(first) if first.isdecimal() else ord(first) - 64, *map(int, rest))
        return Number("arabic" if first.isdecimal() else "letter", values, match.end())
    if match := _ARABIC.match(text):
        return Number("arabic", (int(match["value"]),), match.end())
    if (match := _ROMAN_NUMBER.match(text)) and (value := roman(match["value"])) and match["value"] not in ("C", "L"):
        return Number("roman", (value,), match.end())
    if match := _LETTER.match(text):
        return Number("letter", (ord(match["value"]) - 64,), match.end(), sure=bool(match["mark"]))
    if match := _SMALL.match(text):
        return Number("small letter", (ord(match["value"]) - 96,), match.end())
    return None


def _named(match: re.Match[str]) -> Number | None:
    """A number after a word such as Chapter."""
    first, *rest = match["value"].split(".")
    kind: Kind = "part" if re.fullmatch(_PART, match["name"], re.IGNORECASE) else "arabic"
    value: int | None = None
    if first.lower() in _WORDS:
        value = _WORDS.index(first.lower()) + 1
    elif first.isdecimal():
        value = int(first)
    elif first.isupper() and match["name"][0] not in "Aa":  # Appendix C is no hundredth one
        value = roman(first)
    if value is None and first.isupper() and len(first) == 1:
        kind, value = "part" if kind == "part" else "letter", ord(first) - 64
    return None if value is None else Number(kind, (value, *map(int, rest)), match.end(), named=True)
