"""Texts and tables split into parts of bounded length, between paragraphs, sentences or rows, never within a word.

Standard library only.

A word is a run of characters between blanks; in scripts without blanks every character counts as one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import TypeVar

from common.words import word_spans
from documents.records import Paragraph, Table

Item = TypeVar("Item")
_SENTENCE_END = re.compile(
    r"""(?<=[.!?\u2026])["')\]\u201d\u2019]*\s+(?=[^\W\d_a-z]|["'(\[\u201c\u2018])  """
    r"""# neither before a lower-case letter nor before a number: abbreviations
      | (?<=[\u3002\uff01\uff1f\uff1b])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A text that is not split further."""

    text: str
    page: int | None
    glue: str = "\n"  # between it and the piece before


def word_count(text: str) -> int:
    """Number of words."""
    return len(text.split() if text.isascii() else word_spans(text))


def sentences(text: str) -> list[str]:
    """The sentences of a line of prose: they end before a capital letter, so that abbreviations seldom end one."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    borders = [0, *ends, len(text)]
    return [part for start, end in pairwise(borders) if (part := text[start:end].strip())]


def pieces(paragraph: Paragraph, max_words: int) -> list[TextPiece]:
    """A paragraph, or its lines, sentences and runs of words where it is longer than `max_words`."""
    if word_count(paragraph.text) <= max_words:
        return [TextPiece(paragraph.text, paragraph.page)]
    made: list[TextPiece] = []
    for line in paragraph.text.split("\n"):
        parts = [line] if paragraph.code or word_count(line) <= max_words else sentences(line)
        shorter = [run for part in parts for run in _runs(part, max_words)]
        made += [TextPiece(run, paragraph.page, " " if place else "\n") for place, run in enumerate(shorter)]
    return made


def packed(parts: Iterable[TextPiece], max_words: int) -> list[list[TextPiece]]:
    """Neighbouring pieces together, at most `max_words` words, in groups of about the same length.

    Raises:
        ValueError: If a piece has more words.
    """
    counted = [(piece, word_count(piece.text)) for piece in parts]
    if any(words > max_words for _, words in counted):
        raise ValueError("a piece is too long")
    total = sum(words for _, words in counted)
    return _grouped(counted, max_words, total / max(1, -(-total // max_words)))


def joined(group: Sequence[TextPiece]) -> str:
    """The text of neighbouring pieces."""
    return group[0].text + "".join(piece.glue + piece.text for piece in group[1:])


def split_table(table: Table, max_words: int) -> list[Table]:
    """The table, or tables of some of its rows, each with the header.

    A row is never split, so that a table may be longer than `max_words`.
    """
    words = [sum(map(word_count, row)) for row in table.rows]
    header = sum(words[: table.header_rows]) + word_count(table.caption)
    room = max(max_words - header, max_words // 2, 1)  # also below a long header
    if sum(words[table.header_rows :]) <= room:
        return [table]
    groups = _grouped([*zip(table.rows, words, strict=True)][table.header_rows :], room)
    return [replace(table, rows=(*table.rows[: table.header_rows], *group)) for group in groups]


def _grouped(counted: Iterable[tuple[Item, int]], most: int, enough: float = inf) -> list[list[Item]]:
    """Neighbouring items together, at most `most` words unless one alone has more; `enough` words end a group."""
    groups: list[list[Item]] = []
    held = 0
    for item, words in counted:
        if not groups or held + words > most or held >= enough:
            groups.append([])
            held = 0
        groups[-1].append(item)
        held += words
    return groups


def _runs(text: str, max_words: int) -> list[str]:
    spans = word_spans(text)
    if len(spans) <= max_words:
        return [text]
    return [
        text[spans[start][0] : spans[min(start + max_words, len(spans)) - 1][1]]
        for start in range(0, len(spans), max_words)
    ]
