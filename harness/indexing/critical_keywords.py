"""Critical keywords of a corpus (HiQA's CNED).

Names, part numbers and acronyms, by patterns and corpus statistics, without a model.

A candidate is one of
    a run of capitalized words, digits may follow: "Text Height", "Alto Pump 300"
    a code of letters and digits: "CA-IF1051S", "A100"; not a number with its unit such as "12V"
    an acronym: "EMC", "R&D", "TCP/IP", "CD-ROM", "C++"
and it is critical if it stands in few enough passages and its first word is mostly capitalized in the corpus.
Words on a user's list always are.  Keywords are found by their letters and digits, wherever a text has blanks or
hyphens: LM-317T, LM317T, lm 317t.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import regex

from common.records import clean
from common.words import WORDS, word_texts, words_of

Keyword = tuple[str, ...]  # its words, as `common.words` compares them

RECIPE = {"recognizer": "patterns", "version": 4, "words": WORDS}  # of `names`, for the index manifest
_MAX_WORDS = 6  # of a keyword
_UNIT = re.compile(r"\d+(?:[.,/-]\d+)*[^\W\d_]{0,4}")  # 12, 12V, 3rd, 10-20mm
# by regex, not re: capitals of all scripts, and words with their combining marks
_CODE = regex.compile(r"[^\W_]+(?:[-/.&][^\W_]+)*(?:\+\+|#(?!\w))?")
_CAPITAL = r"[\p{Lu}\p{Lt}]"
_CAPITALIZED = regex.compile(rf"(?<!\w){_CAPITAL}[\w'\u2019&-]*(?:[ \t]+(?:{_CAPITAL}[\w'\u2019&-]*|\d[\w.-]*))*")
_BLANKS = re.compile(r"[ \t]+")
_TITLED = "".join(rf"(?<!\b{title})" for title in ("Mr", "Mrs", "Ms", "Dr", "St", "Prof", "[A-Z]"))  # Mr. O'Brien
_SENTENCE_START = re.compile(rf"(?:^|\n|(?:{_TITLED}\.|[!?:;…])\s+|\s[-*•]\s+)$")
_BEFORE = 8  # characters looked at for the end of a sentence


def names(text: str) -> Iterator[str]:
    """Runs of capitalized words, codes and acronyms; a single capitalized word only inside a sentence.

    The ends of a run are names too: "Tessin Drives FD 1015" is also called "FD 1015", and the first word of a
    sentence may be no part of the name.
    """
    for match in _CAPITALIZED.finditer(text):
        run = match[0].rstrip("'\u2019-.&")
        starts = [0, *(blank.end() for blank in _BLANKS.finditer(run))]
        if len(starts) == 1 and _SENTENCE_START.search(text[max(0, match.start() - _BEFORE) : match.start()]):
            continue
        yield from (run[place:] for place in starts[-_MAX_WORDS:] if run[place].isalpha())
    for match in _CODE.finditer(text):
        code, letters = match[0], sum(c.isalpha() for c in match[0])
        has_digit = any(c.isdigit() for c in code)
        is_acronym = letters > 1 and code.isupper() and not has_digit
        if (has_digit and letters and not _UNIT.fullmatch(code)) or is_acronym or code[-1] in "+#":
            yield code


def as_keyword(text: str) -> Keyword:
    """The words of a name."""
    return tuple(word_texts(clean(text)))


def critical_keywords(
    texts: Iterable[str], max_share: float = 0.2, given: Sequence[str] = ()
) -> dict[Keyword, list[int]]:
    """The critical keywords of a corpus and the positions of the texts that contain them, in order.

    Args:
        texts: Of the passages, in the order of the index; no name goes over the end of a line.
        max_share: A candidate in a greater share of the texts is no keyword; 0 to 1.
        given: Keywords of the user's list.
    """
    held = ["\n".join(map(clean, text.splitlines())) for text in texts]
    own = {keyword for text in given if (keyword := as_keyword(text))}
    own_letters = set(map(_letters, own))
    candidates = {
        keyword
        for text in held
        for name in names(text)
        if 0 < len(keyword := as_keyword(name)) <= _MAX_WORDS and (len(keyword) > 1 or len(keyword[0]) > 1)
    }
    matcher = KeywordMatcher(candidates | own)
    found: dict[Keyword, list[int]] = {}
    words: Counter[str] = Counter()
    capitalized: Counter[str] = Counter()  # how often a word is not written small; digits are not
    for position, text in enumerate(held):
        for keyword in matcher.contained(text):
            found.setdefault(keyword, []).append(position)
        for word in words_of(text):
            words[word.text] += 1
            capitalized[word.text] += not text[word.start].islower()
    most = max(1, int(max_share * len(held)))
    return {
        keyword: positions
        for keyword, positions in sorted(found.items())
        if _letters(keyword) in own_letters
        or (len(positions) <= most and 2 * capitalized[keyword[0]] > words[keyword[0]])
    }


def _letters(words: Sequence[str]) -> str:
    """Words without blanks, but for those between digits."""
    return "".join(
        f".{word}" if before[-1].isdecimal() and word[0].isdecimal() else word
        for before, word in pairwise(["-", *words])
    )


class KeywordMatcher:
    """Finds keywords in texts, in any case of letters, with or without blanks and hyphens.

    Args:
        keywords: All keywords; of those with the same letters and digits the first in alphabetical order counts.
    """

    def __init__(self, keywords: Iterable[Keyword]) -> None:
        self._by_letters: dict[str, Keyword] = {}
        for keyword in sorted(set(keywords)):
            self._by_letters.setdefault(_letters(keyword), keyword)
        self._letters = sorted(self._by_letters)

    def contained(self, text: str) -> list[Keyword]:
        """All distinct keywords that stand in a text, those inside others included, in order of first appearance."""
        words = word_texts(text)
        return list(dict.fromkeys(keyword for start in range(len(words)) for _, keyword in self._at(words, start)))

    def longest(self, text: str) -> list[Keyword]:
        """The distinct keywords of a query: from left to right the longest at each place, without overlap."""
        words, start = word_texts(text), 0
        found: dict[Keyword, None] = {}
        while start < len(words):
            *_, (start, keyword) = [(start + 1, None), *self._at(words, start)]
            if keyword:
                found[keyword] = None
        return list(found)

    def _at(self, words: Sequence[str], start: int) -> Iterator[tuple[int, Keyword]]:
        """The keywords that begin with a word, the shortest first, with the place behind their last word."""
        letters = words[start]
        for end in range(start + 1, len(words) + 1):
            place = bisect_left(self._letters, letters)
            if place == len(self._letters) or not self._letters[place].startswith(letters):
                return  # no keyword begins so
            if keyword := self._by_letters.get(letters):
                yield end, keyword
            if end < len(words):
                letters = _letters([letters, words[end]])
