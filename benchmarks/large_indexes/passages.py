"""Generated passages in any number: words by Zipf's law over ten million words, 100 words each as Wikipedia's of DPR.

A word's frequency is in proportion to 1 / rank up to rank 8,000 and to rank^-1.7 beyond it, as large corpora have it
(Montemurro 2001): some 700 thousand different words in 500 thousand passages. The most frequent ones are BM25's stop
words, the others are numbers in base 20 written with consonants and vowels. The words of benchmarks/full_scale are
those of models' tokenizers, and too few to fill a vocabulary. The last of the passages of an article is shorter, as in
DPR's file.
"""

from collections.abc import Iterator

import numpy as np

from common.records import Passage

WORDS = 10_000_000
PASSAGE_WORDS = 100
_KNEE = 8_000  # rank from which words are rarer than Zipf's law
_AT_ONCE = 10_000  # passages drawn together
_SHORTER_SHARE = 0.15  # of the passages: the last ones of their articles
_SYLLABLES = [consonant + vowel for consonant in "bdkl" for vowel in "aeiou"]


def word(rank: int) -> str:
    """The word of a rank, from 0."""
    from bm25s.stopwords import STOPWORDS_EN

    if rank < len(STOPWORDS_EN):
        return STOPWORDS_EN[rank]
    letters = []
    while rank:
        rank, digit = divmod(rank, len(_SYLLABLES))
        letters.append(_SYLLABLES[digit])
    return "".join(letters)


class Words:
    """Draws words by Zipf's law.

    Args:
        seed: Equal seeds draw equal words.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        ranks = np.arange(1, WORDS + 1)
        weights = np.minimum(1 / ranks, (ranks / _KNEE) ** -1.7 / _KNEE)
        self._cumulative = np.cumsum(weights / weights.sum())
        self._spelled: dict[int, str] = {}

    def draw(self, count: int) -> list[str]:
        """Words in random order."""
        ranks = np.minimum(np.searchsorted(self._cumulative, self._rng.random(count)), WORDS - 1)
        spelled = self._spelled
        return [spelled.get(rank) or spelled.setdefault(rank, word(rank)) for rank in ranks.tolist()]

    def lengths(self, count: int) -> np.ndarray:
        """Words of each passage: 100, or 1 to 99 of the last passage of an article."""
        shorter_N = self._rng.random(count) < _SHORTER_SHARE
        return np.where(shorter_N, self._rng.integers(1, PASSAGE_WORDS, count), PASSAGE_WORDS)


def passages(count: int, seed: int = 0) -> Iterator[Passage]:
    """Passages with a title of two words."""
    words = Words(seed)
    for start in range(0, count, _AT_ONCE):
        lengths_N = words.lengths(min(_AT_ONCE, count - start))
        drawn, end = words.draw(int(lengths_N.sum()) + 2 * len(lengths_N)), 0
        for length in lengths_N.tolist():
            begin, end = end, end + 2 + length
            yield Passage.of(" ".join(drawn[begin : begin + 2]), " ".join(drawn[begin + 2 : end]))


def queries(count: int, seed: int = 1, words_each: int = 12) -> list[str]:
    """Questions of words drawn as those of the passages, stop words among them."""
    words = Words(seed).draw(count * words_each)
    return [" ".join(words[start : start + words_each]) for start in range(0, len(words), words_each)]
