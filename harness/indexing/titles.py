"""Titles as sequences of words, and their exact match in texts: a trie of titles whose nodes are 64-bit hashes.

A title and a text are compared by their words: Unicode NFKC, case-folded, everything but letters and digits a blank;
each character of Chinese, Japanese and Korean is a word. A title has up to two forms,

    its words            "Titanic (1997 film)"  ->  titanic 1997 film
    its words without a final parenthesis       ->  titanic            (the weaker one:
                                                                      see `harness.indexing.title_links`)

and a text names a form where its words stand in it side by side. Of forms that stand inside a longer one only that one
is named; two that overlap are both named.

    hash of words w_1..w_n = sum over i of  hash(w_i) * M^(n-i)   modulo 2^64

so that the hashes of all sequences of a text that begin somewhere and go on in the trie cost one multiplication each.
That one of a billion sequences of words is taken for one of ten million forms that it is not has a probability of about
0.0005.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from common.records import nfkc
from common.words import CJK

MATCHING = 1  # version of what is a word, a form, and named; part of an index's recipe

_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, so that no word's place is lost
_MODULUS = 2**64
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_QUALIFIED = re.compile(r"(.*\S)\s*\([^()]*\)", re.DOTALL)  # "Titanic (1997 film)"
_KEPT_WORDS = 2**18  # hashes of words, about 150 bytes each

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


def title_words(text: str) -> list[str]:
    """The words of a title or a text."""
    return _WORD.findall(nfkc(text).casefold())


@lru_cache(maxsize=_KEPT_WORDS)
def _word_hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def prefix_hashes(words: Sequence[str]) -> list[int]:
    """The hash of the first word, of the first two, and so on to all of them."""
    hashes, so_far = [], 0
    for word in words:
        so_far = (so_far * _MULTIPLIER + _word_hash(word)) % _MODULUS
        hashes.append(so_far)
    return hashes


def title_forms(title: str) -> list[list[str]]:
    """The words of a title, and of it without its final parenthesis; empty without a word."""
    words = title_words(title)
    short = title_words(match[1]) if (match := _QUALIFIED.fullmatch(nfkc(title))) else []
    return [words, short] if short and short != words else [words] if words else []


@dataclass(frozen=True, slots=True)
class Named:
    """Which texts name which forms, in the order of the texts and of the words in them."""

    texts_M: Places  # number of the text
    forms_M: Places  # number of the form
    words_M: Places  # number of the form's words


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
        words = [title_words(text) for text in texts]
        lengths = np.array([len(each) for each in words], dtype=np.int64)
        total = int(lengths.sum())
        hashes_W = np.fromiter((_word_hash(word) for each in words for word in each), dtype=np.uint64, count=total)
        text_ends = np.cumsum(lengths)
        end_of_text_W = np.repeat(text_ends, lengths)
        form_W, end_W = self._longest(hashes_W, end_of_text_W)
        end_before_W = np.zeros_like(end_W)
        np.maximum.accumulate(end_W[:-1], out=end_before_W[1:])
        (starts_M,) = np.nonzero(end_W > end_before_W)  # otherwise the form ends within one that began earlier
        texts_M = np.searchsorted(text_ends, starts_M, side="right")
        return Named(texts_M, form_W[starts_M], end_W[starts_M] - starts_M)

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
