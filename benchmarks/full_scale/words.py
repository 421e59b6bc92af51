"""Zipf-distributed words, drawn by a hash of their place.

Any text can be written alone, in any order, and is the same each time.

Frequencies are proportional to 1 / (rank + 1.5)^1.15 (Mandelbrot). Lengths in characters and in word pieces are those
of Wikipedia's passages: tests/benchmarks/full_scale holds them.
"""

from functools import cache
from itertools import islice, product
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.full_scale.common_words import COMMON_WORDS
from datamodules.world.word_lists import STEMS

VOCABULARY = 120_000  # words
COMMA_SHARE = 0.06  # of words that are followed by a comma
SENTENCE_WORDS = (9, 31)  # shortest and longest sentence
_QUANTILES_BITS = 22
_OFFSET, _EXPONENT = 1.5, 1.15
_GAMMA = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64 (Steele et al., 2014)
_SUFFIXES = ("s", "ed", "ing", "er", "ly", "y", "en", "est", "ness", "less", "ish", "man")


@cache
def vocabulary() -> list[str]:
    """All words, most frequent first.

    Common words, then stems and years, then ever longer compounds, which tokenizers split.
    """
    random = Random(0)
    stems = list(dict.fromkeys(STEMS))
    frequent = [*stems, *(stem.capitalize() for stem in stems), *map(str, range(1880, 2025)), *map(str, range(1, 60))]
    frequent += [stem + suffix for suffix in _SUFFIXES for stem in stems]
    compounds = [one + other for one, other in product(stems, stems)]
    compounds += [compound.capitalize() for compound in compounds]
    random.shuffle(frequent)
    random.shuffle(compounds)
    longer = (one + other + suffix for suffix in _SUFFIXES for one, other in product(stems, stems))
    words = dict.fromkeys([*COMMON_WORDS.split(), *frequent, *compounds])
    words.update(dict.fromkeys(islice(longer, 2 * VOCABULARY)))
    return list(islice(words, VOCABULARY))


@cache
def _forms() -> list[str]:
    """The words, and after them the words with a comma."""
    return [*vocabulary(), *(word + "," for word in vocabulary())]


@cache
def _quantiles() -> NDArray[np.uint32]:
    """The word at each of 2^22 equally likely quantiles."""
    frequency = 1 / (np.arange(1, VOCABULARY + 1) + _OFFSET) ** _EXPONENT
    cumulated = np.cumsum(frequency) / frequency.sum()
    count = 1 << _QUANTILES_BITS
    return np.searchsorted(cumulated, (np.arange(count) + 0.5) / count).astype(np.uint32)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each number: SplitMix64's finalizer."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def draws(seed: int, what: int, numbers: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
    """Random 64-bit numbers that depend on nothing but these arguments.

    Args:
        seed: Of the whole data set.
        what: What they are drawn for: different things draw differently.
        numbers: (N,) numbers of the passages or questions they are drawn for.
        count: How many for each.

    Returns:
        (N, count)
    """
    with np.errstate(over="ignore"):
        start = mixed(np.array([seed * 1_000_003 + what], np.uint64) * _GAMMA)
        keys = mixed(numbers.astype(np.uint64) * _GAMMA + start)
        return mixed(keys[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA)


def words_of(drawn: NDArray[np.uint64]) -> list[list[str]]:
    """One word for each random number, some with a comma.  Shape of `drawn`: (N, count)."""
    ranks = _quantiles()[(drawn >> np.uint64(64 - _QUANTILES_BITS)).astype(np.int64)].astype(np.int64)
    comma = (drawn & np.uint64(0xFFFF)) < np.uint64(round(COMMA_SHARE * 0x10000))
    forms = _forms()
    return [[forms[form] for form in row] for row in (ranks + VOCABULARY * comma).tolist()]


def sentences(items: list[str], number: int) -> list[str]:
    """Sentences of these words or names: capitalized, ending in a full stop, their lengths a function of the number."""
    shortest, longest = SENTENCE_WORDS
    found: list[str] = []
    start = 0
    while start < len(items):
        end = start + shortest + (number * 7 + len(found) * 11) % (longest - shortest + 1)
        if len(items) - end < shortest:
            end = len(items)
        sentence = " ".join(items[start:end]).rstrip(",")
        found.append(sentence[:1].upper() + sentence[1:] + ".")
        start = end
    return found
