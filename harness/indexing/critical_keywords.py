"""Critical keywords of a corpus (HiQA's CNED).

Names, part numbers and acronyms, by patterns and corpus statistics, without a model.

A candidate is one of
    a run of capitalized words, digits may follow: "Text Height", "Alto Pump 300"
    a code of letters and digits: "CA-IF1051S", "A100"; not a number with its unit such as "12V"
    an acronym: "EMC"
and it is critical if it stands in few enough passages and its first word is mostly capitalized in the corpus.
Words on a user's list always are.  Standard library only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from common.records import clean
from common.words import WORDS, words_of

Keyword = tuple[str, ...]  # its words, as `common.words.words_of` gives them

RECIPE = {"recognizer": "patterns", "version": 3, "words": WORDS}  # of `names`, for the index manifest
_MAX_WORDS = 6  # of a keyword
_CODE = re.compile(r"[^\W_]+(?:[-/.][^\W_]+)*")
_UNIT = re.compile(r"\d+(?:[.,/-]\d+)*[^\W\d_]{0,4}")  # 12, 12V, 3rd, 10-20mm
_CAPITALIZED = re.compile(r"(?<!\w)[A-Z][\w'\u2019-]*(?:[ \t]+(?:[A-Z][\w'\u2019-]*|\d[\w.-]*))*")
_BLANKS = re.compile(r"[ \t]+")
_SENTENCE_START = re.compile(r"(?:^|\n|[.!?:;]\s+|\s[-*•]\s+)$")
_BEFORE = 8  # characters looked at for the end of a sentence


def names(text: str) -> Iterator[str]:
    """Runs of capitalized words, codes and acronyms; a single capitalized word only inside a sentence.

    The ends of a run are names too: "Tessin Drives FD 1015" is also called "FD 1015", and the first word of a
    sentence may be no part of the name.
    """
    for match in _CAPITALIZED.finditer(text):
        run = match[0].rstrip("'\u2019-.")
        starts = [0, *(blank.end() for blank in _BLANKS.finditer(run))]
        if len(starts) == 1 and _SENTENCE_START.search(text[max(0, match.start() - _BEFORE) : match.start()]):
            continue
        yield from (run[place:] for place in starts[-_MAX_WORDS:] if run[place].isalpha())
    for match in _CODE.finditer(text):
        code = match[0]
        has_both = any(c.isdigit() for c in code) and any(c.isalpha() for c in code)
        if (has_both and not _UNIT.fullmatch(code)) or (len(code) > 1 and code.isalpha() and code.isupper()):
            yield code


def as_keyword(text: str) -> Keyword:
    """The words of a name."""
    return tuple(word.text for word in words_of(clean(text)))


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
        if keyword in own or (len(positions) <= most and 2 * capitalized[keyword[0]] > words[keyword[0]])
    }


class KeywordMatcher:
    """Finds keywords in texts, in any case of letters.

    Args:
        keywords: All keywords.
    """

    def __init__(self, keywords: Iterable[Keyword]) -> None:
        self._keywords = set(keywords)
        self._longest: dict[str, int] = {}  # by first word: length of the longest keyword, in words
        for keyword in self._keywords:
            self._longest[keyword[0]] = max(len(keyword), self._longest.get(keyword[0], 0))

    def contained(self, text: str) -> list[Keyword]:
        """All distinct keywords that stand in a text, those inside others included, in order of first appearance."""
        words = [word.text for word in words_of(text)]
        found = (
            keyword
            for start, word in enumerate(words)
            for length in range(1, self._longest.get(word, 0) + 1)
            if (keyword := tuple(words[start : start + length])) in self._keywords
        )
        return list(dict.fromkeys(found))

    def longest(self, text: str) -> list[Keyword]:
        """The distinct keywords of a query: from left to right the longest at each place, without overlap."""
        words, start = [word.text for word in words_of(text)], 0
        found: dict[Keyword, None] = {}
        while start < len(words):
            lengths = range(self._longest.get(words[start], 0), 0, -1)
            keyword = next((k for n in lengths if (k := tuple(words[start : start + n])) in self._keywords), None)
            if keyword:
                found[keyword] = None
            start += len(keyword or (words[start],))
        return list(found)
