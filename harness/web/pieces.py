"""Pieces of a page's text, as long as passages, on borders of paragraphs or sentences.  Standard library only."""

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile("(?<=[.!?\u2026])\\s+|(?<=[\u3002\uff01\uff1f])")  # the latter Chinese and Japanese
_LONGEST_WORD = 12  # characters on average: bounds pieces of scripts without spaces


def pieces(text: str, max_words: int) -> list[str]:
    """Pieces of at most `max_words` words.

    As many whole paragraphs as fit, or sentences of a longer paragraph, or words of a longer sentence.

    Args:
        text: With a paragraph a line.
        max_words: Also bounds the characters, to 12 for each word.
    """
    made: list[str] = []
    held: list[str] = []
    for paragraph in filter(None, map(str.strip, text.splitlines())):
        for part in [paragraph] if _fits([paragraph], max_words) else _sentences(paragraph, max_words):
            if held and not _fits([*held, part], max_words):
                made.append("\n".join(held))
                held = []
            held.append(part)
    return [*made, *(["\n".join(held)] if held else [])]


def _fits(parts: list[str], max_words: int) -> bool:
    words = sum(len(part.split()) for part in parts)
    return words <= max_words and sum(map(len, parts)) <= max_words * _LONGEST_WORD


def _sentences(paragraph: str, max_words: int) -> Iterator[str]:
    for sentence in filter(None, _SENTENCE_END.split(paragraph)):
        if _fits([sentence], max_words):
            yield sentence
            continue
        words = sentence.split()
        for start in range(0, len(words), max_words):
            part, most = " ".join(words[start : start + max_words]), max_words * _LONGEST_WORD
            yield from (part[place : place + most] for place in range(0, len(part), most))
