"""Titles as sequences of words, and their exact match in texts: a trie of titles whose nodes are 64-bit hashes.

A title and a text are compared by their words (`common.words`); each character of Chinese, Japanese, Korean and Thai is
a word. A title has up to two forms,

    its words            "Titanic (1997 film)"  ->  titanic 1997 film
    its words without a final parenthesis       ->  titanic            (the weaker one:
                                                                      see `harness.indexing.title_links`)

each of them also with its compounds joined and taken apart, where it has some: spider man, spiderman. A text is read
twice, with its compounds split and joined, and names a form where its words stand in it side by side. Of forms that
stand inside a longer one only that one is named; two that overlap are both named.

A pronoun, stop word, number or letter ("It", "2012", "C") is named only where the text writes it as a title: in quotes
or italics, as all of the text, and a word also with a capital within a sentence.

    hash of words w_1..w_n = sum over i of  hash(w_i) * M^(n-i)   modulo 2^64

so that the hashes of all sequences of a text that begin somewhere and go on in the trie cost one multiplication each.
That one of a billion sequences of words is taken for one of ten million forms that it is not has a probability of about
0.0005.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from common.words import WORDS, Compound, compounds_of, word_texts

MATCHING = 100 * WORDS + 2  # version of what is a word, a form, and named; part of an index's recipe

_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, so that no word's place is lost
_MODULUS = 2**64
_QUALIFIED = re.compile(r"(.*\S)\s*\([^()]*\)", re.DOTALL)  # "Titanic (1997 film)"
_KEPT_WORDS = 2**18  # hashes of words, about 150 bytes each
_KEPT_CHUNKS = 2**16  # of characters between blanks, about 500 bytes each
_WEAK = {
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does", "for",
    "from", "had", "has", "have", "he", "her", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it",
    "its", "may", "me", "might", "mine", "must", "my", "no", "nor", "not", "of", "on", "or", "our", "ours", "shall",
    "she", "should", "so", "such", "than", "that", "the", "their", "theirs", "them", "then", "there", "these", "they",
    "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "would", "yes", "you", "your", "yours"
}  # fmt: skip
_MARKS = r"""["'*_\u00ab\u00bb\u2018-\u201f\u2039\u203a\u3008-\u300f]"""  # of quotes and italics
_QUOTED = re.compile(rf"{_MARKS}\w+(?:[.'-]\w+)*\.?[,.!?]?{_MARKS}(?!\w)")
_ENDS_SENTENCE = re.compile(rf"[.!?:;\u2026\u3002]({_MARKS}|[)\]])*$|^[-\u2022*]$")

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


@lru_cache(maxsize=_KEPT_WORDS)
def _word_hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def prefix_hashes(words: Sequence[str]) -> list[int]:
    """The hash of the first word, of the first two, and so on to all of them."""
    return [*accumulate(map(_word_hash, words), lambda so_far, own: (so_far * _MULTIPLIER + own) % _MODULUS)]


def title_forms(title: str) -> list[tuple[list[str], bool]]:
    """The words of a title's forms, and whether they are of the whole title, these first; empty without a word."""
    title = unicodedata.normalize("NFKC", title)
    short = match[1] if (match := _QUALIFIED.fullmatch(title)) else ""
    forms: dict[tuple[str, ...], bool] = {}
    for text, whole in ((title, True), (short, False)):
        compounds = chain.from_iterable(compounds_of(text))
        readings = zip(*((each.words, _together(each), each.parts) for each in compounds), strict=True)
        for reading in readings:
            forms.setdefault(tuple(word for words in reading for word in words), whole)
    return [(list(words), whole) for words, whole in forms.items()]


def _together(compound: Compound) -> tuple[str, ...]:
    return (compound.joined,) if compound.joined else compound.words


def _is_weak(word: str) -> bool:
    """Whether a word alone names a title only if it is written as one."""
    return word.isdecimal() or word in _WEAK or (len(word) == 1 and word < "\u0530")  # a letter


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Characters between blanks as they are read: their words, and their compounds joined."""

    hashes: tuple[int, ...]
    weak: tuple[bool, ...]
    joined: tuple[int, ...]  # hashes
    joined_weak: tuple[bool, ...]
    counts: tuple[int, ...]  # words in each of `joined`


@lru_cache(maxsize=_KEPT_CHUNKS)
def _chunk(text: str) -> _Chunk:
    words = word_texts(text)
    hashes, weak = tuple(map(_word_hash, words)), tuple(map(_is_weak, words))
    if len(words) < 2:  # most chunks
        return _Chunk(hashes, weak, hashes, weak, (1,) * len(words))
    joined: list[str] = []
    counts: list[int] = []
    for compound in chain.from_iterable(compounds_of(text)):
        together = _together(compound)
        joined += together
        counts += [len(compound.words)] if len(together) == 1 else [1] * len(together)
    return _Chunk(hashes, weak, tuple(map(_word_hash, joined)), tuple(map(_is_weak, joined)), tuple(counts))


@dataclass(frozen=True, slots=True)
class Named:
    """Which texts name which forms, in the order of the texts and of the words in them."""

    texts_M: Places  # number of the text
    forms_M: Places  # number of the form


class TitleTrie:
    """Finds forms of titles in texts.

    Args:
        nodes_T: Hashes of all first words of all forms, one word up to all of them, increasing.
        forms_T: For each node the number of the form that ends there, or -1.
    """

    def __init__(self, nodes_T: Hashes, forms_T: NDArray[np.int32]) -> None:
        self._nodes_T, self._forms_T = nodes_T, forms_T

    def named(self, texts: Sequence[str]) -> Named:
        """The forms that texts name."""
        chunks = [text.split() for text in texts]
        read = [[_chunk(chunk) for chunk in text] for text in chunks]
        reading, text_ends, end = _Readings(), list[int](), 0
        for text in read:
            reading.add(end, [(chunk.hashes, chunk.weak, (1,) * len(chunk.hashes)) for chunk in text])
            if any(len(chunk.joined) < len(chunk.hashes) for chunk in text):
                reading.add(end, [(chunk.joined, chunk.joined_weak, chunk.counts) for chunk in text])
            end += sum(len(chunk.hashes) for chunk in text)
            text_ends.append(end)
        rows_M = _longest_rows(self._in(reading))
        texts_M = np.searchsorted(np.array(text_ends), rows_M[:, 0], side="right")
        kept_M = rows_M[:, 3] == 0
        for row in np.flatnonzero(~kept_M):
            number, first = int(texts_M[row]), int(rows_M[row, 0])
            begin = text_ends[number - 1] if number else 0
            place = int(np.searchsorted(np.cumsum([sum(c.counts) for c in read[number]]), first - begin, "right"))
            is_all = (begin, text_ends[number]) == (first, -rows_M[row, 1])
            kept_M[row] = is_all or _is_written_as_title(chunks[number], place)
        return Named(texts_M[kept_M], rows_M[kept_M, 2])

    def _in(self, reading: "_Readings") -> Places:
        """What readings name: rows of the first word's number, minus that behind the last, the form, 1 if weak."""
        begins_R = np.array([*reading.begins, len(reading.hashes)], dtype=np.int64)
        form_W, end_W = self._longest(
            np.array(reading.hashes, dtype=np.uint64), np.repeat(begins_R[1:], np.diff(begins_R))
        )
        (starts_M,) = np.nonzero(form_W >= 0)
        lasts_M = end_W[starts_M]
        before_W = np.concatenate(([0], np.cumsum(np.array(reading.counts, dtype=np.int64))))
        shift_R = np.array(reading.numbers, dtype=np.int64) - before_W[begins_R[:-1]]
        shift_M = shift_R[np.searchsorted(begins_R, starts_M, side="right") - 1]
        weak_M = np.array(reading.weak, dtype=np.int64)[starts_M] * (lasts_M - starts_M == 1)
        return np.stack([before_W[starts_M] + shift_M, -before_W[lasts_M] - shift_M, form_W[starts_M], weak_M], axis=1)

    def _longest(self, hashes_W: Hashes, end_of_text_W: Places) -> tuple[Places, Places]:
        """For each word the longest form that begins with it, and the place after the form's last word.

        -1 and 0 without one.
        """
        form_W, end_W = np.full(len(hashes_W), -1), np.zeros(len(hashes_W), dtype=np.int64)
        starts, so_far, length = np.arange(len(hashes_W)), hashes_W, 1
        multiplier = np.uint64(_MULTIPLIER)
        while len(starts) and len(self._nodes_T):
            nodes = np.minimum(np.searchsorted(self._nodes_T, so_far), len(self._nodes_T) - 1)
            in_trie = self._nodes_T[nodes] == so_far
            starts, so_far, forms = starts[in_trie], so_far[in_trie], self._forms_T[nodes[in_trie]]
            ends_here = forms >= 0
            form_W[starts[ends_here]], end_W[starts[ends_here]] = forms[ends_here], starts[ends_here] + length
            goes_on = starts + length < end_of_text_W[starts]
            starts, so_far = starts[goes_on], so_far[goes_on]
            so_far = so_far * multiplier + hashes_W[starts + length]  # overflow is the modulus
            length += 1
        return form_W, end_W


def _longest_rows(rows_M: Places) -> Places:
    """Rows of `TitleTrie._in` in the order of their words, each once, without those that stand inside a longer one."""
    rows_M = np.unique(rows_M, axis=0)  # by start, then the longest first
    ends_M = -rows_M[:, 1]
    longest_M, same_M = np.ones(len(rows_M), dtype=np.bool_), np.zeros(len(rows_M), dtype=np.bool_)
    longest_M[1:] = ends_M[1:] > np.maximum.accumulate(ends_M)[:-1]
    same_M[1:] = (rows_M[1:, :2] == rows_M[:-1, :2]).all(axis=1)  # the words of the row before it, as another form
    first_M = np.maximum.accumulate(np.where(same_M, 0, np.arange(len(rows_M))))
    return rows_M[longest_M[first_M]]


class _Readings:
    """Readings of texts, one after the other: hashes, each of one word or of several that are joined."""

    def __init__(self) -> None:
        self.hashes: list[int] = []
        self.weak: list[bool] = []
        self.counts: list[int] = []  # of words
        self.begins: list[int] = []  # of each reading: its place in `hashes`
        self.numbers: list[int] = []  # and the number of its first word

    def add(self, number: int, chunks: Iterable[tuple[Sequence[int], Sequence[bool], Sequence[int]]]) -> None:
        """The next reading, of chunks: their hashes, which are weak, and of how many words each is."""
        self.begins.append(len(self.hashes))
        self.numbers.append(number)
        for hashes, weak, counts in chunks:
            self.hashes.extend(hashes)
            self.weak.extend(weak)
            self.counts.extend(counts)


def _is_written_as_title(chunks: Sequence[str], place: int) -> bool:
    """Whether a text writes the word between two blanks as a title."""
    chunk = chunks[place]
    if len(_chunk(chunk).counts) != 1:  # it stands with others
        return False
    written = "".join(each for each in chunk if each.isalnum())
    if _QUOTED.search(chunk):
        return True
    if len(written) == 1 or not written[0].isupper() or "".join(chunks).isupper():
        return False
    return written.isupper() or (place > 0 and not _ENDS_SENTENCE.search(chunks[place - 1]))
