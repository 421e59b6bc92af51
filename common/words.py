"""Words of texts, the form in which they are compared, and the terms of an index, defined once for the whole project.

A word is a run of letters, digits and combining marks, with the symbols that make another term of it: c++, f#, .net,
at&t, $5, 50%. Of scripts that write no blanks (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) every character is
a word, with its marks. A number is written without its commas: 1000000. An emoji is a word, and so is a currency sign
beside a number.

Words are compared as NFKC, case-folded, without invisible characters, without the marks of Latin, Greek and Cyrillic
letters and the vowel points of Arabic and Hebrew, ł as l: Zürich is zurich. Digits of all scripts are those of ASCII.
Arabic letters that are typed in several ways are one: alef with and without hamza, Persian yeh.

Words with one of - ' . _ between are a compound: Wi-Fi, O'Brien, U.S., Node.js, max_len, and so are AC/DC and I/O. An
index has its words and what they are together (wi, fi, wifi), so that all ways to write it meet.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

WORDS = 3  # version of what a word, its form and a term are: indexes and labels of words record it

# kana, Chinese characters, Hangul; for use in a character class
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"

_ALONE = "\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese and Japanese characters
_RUN = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_BETWEEN_BLANKS = re.compile(r"\S+")
_CUT = " ..."

# of Latin, Greek and Cyrillic; variation selectors; vowel points of Arabic and Hebrew; invisible characters
_DROPPED = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0655\u0670"
    "\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_REPLACED = {  # what Unicode does not decompose; signs that are written in several ways
    **dict(zip("łøđħŧıðŁØĐĦŦÐ", "lodhtidLODHTD", strict=True)), "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th",
    "Þ": "TH", **dict.fromkeys("\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02be\u02bf\u00b4\u05f3\u05f4\u2032\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'), "\u066a": "%", "\u066b": ".", "\u066c": ",",
    **dict(zip("\u0671\u0649\u06cc\u06a9\u0629", "\u0627\u064a\u064a\u0643\u0647", strict=True)),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"), "\u2044": "/", "\u266f": "#",
    **dict.fromkeys("\u2122\u2120", " "),
}  # fmt: skip
_FRACTIONS = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")  # in 1½ the numbers are 1 and 1/2
_NUMERATOR = re.compile(r"(?<=\d)\d(?=\u2044)")  # in 11\u20442, which is 1½ in NFKC

_WRITTEN_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# {word}: a letter or digit, {letter}, {money}: a currency sign
_WORD = r"""
    (?: {money}(?=\d) | (?<![^\s(\[{{,;:/=>*"'-])\.(?={letter}) )?  # $5, .net
    (?: \d{{1,3}}(?:(?:,\d{{2,3}})*,\d{{3}}|(?:'\d{{3}})+)(?!\d){word}*  # 1,000,000
      | {word}+(?:(?<={letter})&(?={letter}){word}+)* )  # at&t
    (?: \+\+ | [+#](?![\w+#]) | (?<=\d)% )?  # c++, c#, 50%
  | (?<![^\s\d]){money}(?!\w)  # 5 $
"""
_ASCII_WORD = re.compile(_WORD.format(word="[A-Za-z0-9]", letter="[A-Za-z]", money=r"\$"), re.VERBOSE | re.ASCII)
# a word that is all of its terms, as most are
_PLAIN = re.compile(r"""["'(\[]*([A-Z]?[a-z]+|[A-Z]+|[0-9]+)["')\].,;:!?]*""")
_BETWEEN_DIGITS = "./:"  # signs that stay between digits: 3.5, 9/11, 10:30
_JOINING = "-'._"  # signs between the words of a compound
_SHORT = 2  # letters, at most, on both sides of a stroke in a compound without capitals: km/h, but not and/or
_CLITICS = {"s", "t", "d", "m", "re", "ll", "ve"}  # after an apostrophe
_ENDINGS = {"s": "s", "t": "t"}  # McDonald's is McDonalds, don't is dont; but she'll is no shell
_AFTER = "+#%"
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")  # 1.000.000
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
# RTX4090, 10GB, but not 2nd
_BEFORE_DIGITS = re.compile(r"(?<=[^\W\d_]{2})(?=\d)|(?<=\d)(?=[^\W\d_]{2})(?!(?i:st|nd|rd|th)(?![^\W\d_]))")
# 1 000 000, J. R. R.
_SPACED = re.compile(r"(?<![^\s(\"'])(?:\d{1,3}(?:\s\d{3})+(?!\w)|[A-Z]\.(?:\s[A-Z]\.)+)")
_SHORTEST_FIRST = 3  # letters of the first part of a word that is split before a capital: McDonald and WiFi are not
_CACHED = 2**16  # chunks whose words, and whose terms, are kept, some 15 MB each
_LONGEST_CACHED = 40  # characters of such a chunk


@dataclass(frozen=True, slots=True)
class Word:
    """One occurrence of a word in a text."""

    text: str  # in the form in which words are compared
    start: int  # characters of the text before it
    end: int  # text[start:end] is the word as written


@dataclass(frozen=True, slots=True)
class Compound:
    """Words that stand together: Wi-Fi, U.S., McDonald's, 3.11.2; most often one word."""

    words: tuple[str, ...]
    joined: str  # what they are together: wifi, us, mcdonalds, 3.11.2; empty of a script without blanks
    parts: tuple[str, ...]  # the words, split where a capital or a number begins: open street map, rtx 4090
    terms: tuple[str, ...]  # of an index


class _Folding(dict[int, str]):
    """The form of a character in a comparison, before its case is folded; empty if it does not count."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = _REPLACED.get(character) or _DROPPED.sub("", unicodedata.normalize("NFKD", character))
        folded = unicodedata.normalize("NFC", "".join(map(_replaced, plain)))
        self[code] = f" {folded}" if _FRACTIONS.match(character) else folded
        return self[code]


def _replaced(character: str) -> str:
    return str(unicodedata.decimal(character, _REPLACED.get(character, character)))


_FOLDED = _Folding()


@cache
def _pattern() -> "Pattern[str]":
    """Finds the words of any text, those of scripts without blanks in runs."""
    import regex  # a tenth of the speed of `re`: for text that is not ASCII

    alone = rf"[[{_WRITTEN_ALONE}]--[\p{{Nd}}\p{{P}}\p{{S}}]]"
    word = _WORD.format(word=rf"[\w--_--{alone}]", letter=rf"[[\p{{L}}\p{{M}}]--{alone}]", money=r"\p{Sc}")
    picture = r"[\p{Extended_Pictographic}--[©®]]|\p{Regional_Indicator}{2}"
    return regex.compile(rf"(?P<alone>[{alone}\u3099\u309a]+)|{word}|{picture}", regex.V1 | regex.VERBOSE)


@cache
def _characters() -> "Pattern[str]":
    import regex

    return regex.compile(r"\X")


def _found(folded: str) -> Iterator[tuple[str, int, int, bool]]:
    """The words of a folded text: as written, from where to where, and whether its script writes no blanks."""
    if folded.isascii():
        yield from ((match[0], *match.span(), False) for match in _ASCII_WORD.finditer(folded))
        return
    for match in _pattern().finditer(folded):
        if match["alone"]:
            start = match.start()
            yield from ((each[0], start + each.start(), start + each.end(), True)
                        for each in _characters().finditer(match[0]))  # fmt: skip
        else:
            yield (match[0], *match.span(), False)


def _form(found: str) -> str:
    """A word of a folded text as it is compared."""
    if "," in found or "'" in found:
        found = found.replace(",", "").replace("'", "")
    return found.lower() if found.isascii() else unicodedata.normalize("NFC", found.casefold())


def words_of(text: str) -> list[Word]:
    """The words of a text in order."""
    if text.isascii():
        return [Word(_form(match[0]), *match.span()) for match in _ASCII_WORD.finditer(text)]
    starts: list[int] = []  # by character of the folded text, where the character it comes from stands
    ends: list[int] = []
    folded = _folded(text)
    for place, piece in enumerate(folded):
        if piece:
            starts += [place] * len(piece)
            ends += [place + 1] * len(piece)
        elif ends:  # a mark belongs to the letter before it
            ends[-1] = place + 1
    return [Word(_form(found), starts[first], ends[end - 1]) for found, first, end, _ in _found("".join(folded))]


def _folded(text: str) -> list[str]:
    """The form of each character of a text in a comparison, before its case is folded."""
    folded = [*map(_FOLDED.__getitem__, map(ord, text))]
    for match in _NUMERATOR.finditer(text):
        folded[match.start()] = f" {folded[match.start()]}"
    return folded


def word_texts(text: str) -> list[str]:
    """The words of a text as they are compared, in order; faster than `words_of`, which says where they stand."""
    words: list[str] = []
    for chunk in text.split():
        words += _words(chunk) if len(chunk) <= _LONGEST_CACHED else _words.__wrapped__(chunk)
    return words


@lru_cache(maxsize=_CACHED)
def _words(chunk: str) -> tuple[str, ...]:
    if plain := _PLAIN.fullmatch(chunk):
        return (plain[1].lower(),)
    return tuple(_form(found) for found, *_ in _found(chunk if chunk.isascii() else "".join(_folded(chunk))))


def word_count(text: str) -> int:
    """Number of words of a text, for its length.

    Of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese every character counts, as there are no blanks.
    """
    return len(word_texts(text))


def compounds_of(text: str) -> list[list[Compound]]:
    """The compounds of each run of characters between blanks of a text, in order."""
    return [[*_compounds(chunk)] for chunk in text.split()]


def terms_of(text: str) -> list[str]:
    """The terms by which an index finds a text: words, parts of words, and joined forms of compounds, in order.

    A word with a symbol is a term; the word without it is another one if more than a letter is left: c++; disney+,
    disney; 5%, 5; at&t, att. A number or initials with blanks (1 000 000, J. R. R.) are a term together, too. Of
    scripts without blanks every character and every pair of neighbours is a term.
    """
    terms: list[str] = []
    for chunk in text.split():
        terms += _terms(chunk) if len(chunk) <= _LONGEST_CACHED else _terms.__wrapped__(chunk)
    return terms + [_form("".join(_ASCII_WORD.findall(spaced))) for spaced in _SPACED.findall(text)]


@lru_cache(maxsize=_CACHED)
def _terms(chunk: str) -> tuple[str, ...]:
    return tuple(term for compound in _compounds(chunk) for term in compound.terms)


def _compounds(chunk: str) -> Iterator[Compound]:
    """The compounds of characters without blanks."""
    if plain := _PLAIN.fullmatch(chunk):
        word = (plain[1].lower(),)
        yield Compound(word, *word, word, word)
        return
    text = chunk if chunk.isascii() else "".join(_folded(unicodedata.normalize("NFC", chunk)))
    words: list[str] = []  # of the compound so far
    signs: list[str] = []  # before each of them
    last, run = -1, False  # where it ends; whether its script writes no blanks
    for found, start, end, alone in _found(text):
        sign = text[last:start] if words else ""
        if words and not (sign == "" if run and alone else not (run or alone) and _joins(words[-1], sign, found)):
            yield _run(words) if run else _compound(words, signs)
            words, signs = [], []
        words.append(found)
        signs.append(sign)
        last, run = end, alone
    if words:
        yield _run(words) if run else _compound(words, signs)


def _joins(before: str, sign: str, after: str) -> bool:
    """Whether the text between two words joins them to one compound."""
    if len(sign) != 1 or (before[-1].isdecimal() and after[0].isdecimal() and sign in _BETWEEN_DIGITS):
        return len(sign) == 1
    in_capitals = before[-1].isupper() and (after[0].isupper() or after.isdecimal())
    return sign in _JOINING or (sign == "/" and (in_capitals or max(len(before), len(after)) <= _SHORT))


def _run(characters: list[str]) -> Compound:
    words = tuple(map(_form, characters))
    return Compound(words, "", words, (*words, *(one + other for one, other in pairwise(words))))


def _compound(found: list[str], signs: list[str]) -> Compound:
    """Words of a folded text, and the sign before each of them."""
    words, joined, ending = tuple(map(_form, found)), "", ""
    parts: list[str] = []
    terms: list[str] = []
    for sign, written, word in zip(signs, found, words, strict=True):
        if sign == "'" and word in _CLITICS:
            parts.append(word)
            ending = _ENDINGS.get(word, f"'{word}")
            continue
        between_digits = sign in _BETWEEN_DIGITS and joined[-1:].isdecimal() and word[0].isdecimal()
        joined += ending + (sign if between_digits else "") + word
        ending = ""
        core = word.rstrip(_AFTER)
        money = unicodedata.category(core[0]) == "Sc"
        core = core[1:] if core[0] == "." or money else core
        if core != word:
            parts.append(word)
            terms += [core] * (len(core) > 1 or core.isdecimal()) + [word] + [word[0]] * (money and len(word) > 1)
        else:
            pieces = _pieces(written)
            parts += pieces
            terms += dict.fromkeys((*pieces, word.replace("&", ""), word))
    whole = joined + ending
    if len(words) > 1:
        together = [joined] * (joined not in terms) + [whole] * (ending in _ENDINGS.values())
        terms += together + [joined.replace(".", "")] * bool(_GROUPED.fullmatch(joined))
    return Compound(words, whole, tuple(parts), tuple(terms))


def _pieces(written: str) -> list[str]:
    """A word without symbols at its ends, split at & and where a capital or a number begins."""
    pieces = []
    for each in written.split("&"):
        split = [each] if each.islower() or each.isupper() else _CAMEL.split(each)
        if len(split[0]) < _SHORTEST_FIRST or split[0] == "Mac" or min(map(len, split)) == 1:
            split = [each]
        pieces += [_form(part) for one in split for part in _BEFORE_DIGITS.split(one)]
    return pieces


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every run of characters between blanks, of Chinese and Japanese of every character."""
    return [match.span() for match in _RUN.finditer(text)]


def distinct_words(text: str) -> list[str]:
    """The words of a text as they are compared, each once, in the order of first appearance."""
    return list(dict.fromkeys(word_texts(text)))


def new_words(question: str, texts: Iterable[str]) -> list[str]:
    """The distinct words of some texts that the question lacks, in the order of first appearance."""
    own = set(distinct_words(question))
    return [word for word in dict.fromkeys(w for text in texts for w in distinct_words(text)) if word not in own]


def without(text: str, words: Collection[str]) -> str:
    """A text without all occurrences of some words; every run of white space becomes a single blank.

    Args:
        text: Its punctuation stays.
        words: As they are compared, as `words_of` gives them.
    """
    left, place = [], 0
    for word in words_of(text):
        if word.text in words:
            left.append(text[place : word.start])
            place = word.end
    return " ".join("".join([*left, text[place:]]).split())


def first_words(text: str, most: int) -> str:
    """The first words of a text between blanks, at most `most`, with the white space between them.

    A shorter text as it is.
    """
    ends = [match.end() for match in islice(_BETWEEN_BLANKS.finditer(text), most + 1)]
    return text if len(ends) <= most else text[: ends[most - 1]] if most else ""


def first_characters(text: str, most: int) -> str:
    """The first words of a text, with " ..." at most `most` characters; a shorter text as it is."""
    if len(text) <= most:
        return text
    ends = [match.end() for match in _BETWEEN_BLANKS.finditer(text, 0, most)]
    fitting = [end for end in ends if end + len(_CUT) <= most and text[end].isspace()]
    return (text[: fitting[-1]] if fitting else "") + (_CUT if fitting else _CUT.strip())
