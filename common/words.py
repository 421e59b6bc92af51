"""Words of questions and passages, as the extractive rewriter decides on them.  Standard library only."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Word:
    """One occurrence of a word in a text."""

    text: str  # lower-case
    start: int  # characters of the text before it
    end: int  # text[start:end] is the word as written


def words_of(text: str) -> list[Word]:
    """The words of a text in order: its longest runs of letters, digits and underscores."""
    return [Word(match[0].lower(), *match.span()) for match in _WORD.finditer(text)]


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
