"""Words of questions and passages, as the extractive rewriter decides on them.  Standard library only."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

# kana, Chinese characters, Hangul; for use in a character class
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"

_WORD = re.compile(r"\w+")
_ALONE = "\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese and Japanese characters
_RUN = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_COUNTED = re.compile(rf"[{CJK}]|[^\W{CJK}]+")
_BETWEEN_BLANKS = re.compile(r"\S+")
_CUT = " ..."


@dataclass(frozen=True, slots=True)
class Word:
    """One occurrence of a word in a text."""

    text: str  # lower-case
    start: int  # characters of the text before it
    end: int  # text[start:end] is the word as written


def words_of(text: str) -> list[Word]:
    """The words of a text in order: its longest runs of letters, digits and underscores."""
    return [Word(match[0].lower(), *match.span()) for match in _WORD.finditer(text)]


def word_count(text: str) -> int:
    """Number of words of a text, for its length.

    Of Chinese, Japanese and Korean every character counts, as there are no blanks.
    """
    return len(_COUNTED.findall(text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every run of characters between blanks, of Chinese and Japanese of every character."""
    return [match.span() for match in _RUN.finditer(text)]


def distinct_words(text: str) -> list[str]:
    """The words of a text in lower case, each once, in the order of first appearance."""
    return list(dict.fromkeys(word.text for word in words_of(text)))


def new_words(question: str, texts: Iterable[str]) -> list[str]:
    """The distinct words of some texts that the question lacks, in the order of first appearance."""
    own = set(distinct_words(question))
    return [word for word in dict.fromkeys(w for text in texts for w in distinct_words(text)) if word not in own]


def without(text: str, words: Collection[str]) -> str:
    """A text without all occurrences of some words; every run of white space becomes a single blank.

    Args:
        text: Its punctuation stays.
        words: In lower case, as `words_of` gives them.
    """
    left = _WORD.sub(lambda match: "" if match[0].lower() in words else match[0], text)
    return " ".join(left.split())


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
