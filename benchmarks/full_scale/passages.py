"""Generated paragraphs and 100-word passages about named things, each a function of the seed and its number.

Four passages make an article, sixteen articles a topic. Every passage names its article; of a topic's passages about
two in five name what the topic's questions ask for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.full_scale.words import draws, mixed, sentences, words_of
from datamodules.world.word_lists import GIVEN_NAMES, STEMS

ARTICLE_PASSAGES = 4
TOPIC_PASSAGES = 64
PASSAGE_WORDS = 100  # DPR's Wikipedia (Karpukhin et al., 2020)
ANSWER_SHARE = 0.4  # of a topic's passages
PARAGRAPH_WORDS = (24, 600)  # shortest and longest
_PARAGRAPH_MEDIAN, _PARAGRAPH_SIGMA = 80, 0.55  # log-normal, as HotpotQA's paragraphs

_GIVEN = [name for names in GIVEN_NAMES.values() for name in names]
_STEMS = list(dict.fromkeys(STEMS))
_KINDS = ("", "", "", " River", " House", " Park", " (film)", " Company")
NAMES = len(_GIVEN) * len(_STEMS) ** 2 * len(_KINDS)
_STEP = 7_368_787  # a prime that divides no NAMES: neighbouring numbers have unlike names
_TEXT, _LENGTH, _ANSWER = range(3)  # what is drawn


def name(number: int) -> str:
    """A name, different for every number below `NAMES`: `Clara Alderbrook`, `Hugo Snowfield River`."""
    number = number * _STEP % NAMES
    number, kind = divmod(number, len(_KINDS))
    number, given = divmod(number, len(_GIVEN))
    one, other = divmod(number, len(_STEMS))
    return f"{_GIVEN[given]} {_STEMS[one].capitalize()}{_STEMS[other]}{_KINDS[kind]}"


def answer_name(seed: int, number: int) -> str:
    """The name that questions about a topic, or about a paragraph, ask for."""
    with np.errstate(over="ignore"):
        return name(int(mixed(np.array([number * 977 + seed], np.uint64))[0]) % NAMES)


@dataclass(frozen=True)
class Passages:
    """The 100-word passages of a corpus.

    Args:
        seed: Passages of another seed have other words.
        total: Number of passages.
    """

    seed: int
    total: int

    def write(self, numbers: Sequence[int]) -> list[dict[str, str]]:
        """Rows {id, title, text} as in DPR's Wikipedia; ids count from 1."""
        numbers_N = np.asarray(numbers, np.int64)
        words = words_of(draws(self.seed, _TEXT, numbers_N, PASSAGE_WORDS))
        answered = self.has_answer(numbers_N)
        rows = []
        for number, text, here in zip(numbers_N.tolist(), words, answered.tolist(), strict=True):
            title = name(number // ARTICLE_PASSAGES)
            names = {0: title, 40: answer_name(self.seed, number // TOPIC_PASSAGES)} if here else {0: title}
            written = _with_names(text, names, PASSAGE_WORDS)
            rows.append({"id": str(number + 1), "title": title, "text": " ".join(sentences(written, number))})
        return rows

    def has_answer(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(N,) whether each passage names what its topic's questions ask for; the first of a topic always does."""
        bits = draws(self.seed, _ANSWER, numbers, 1)[:, 0] >> np.uint64(48)
        return (numbers % TOPIC_PASSAGES == 0) | (bits < np.uint64(round(ANSWER_SHARE * 0x10000)))


@dataclass(frozen=True)
class Paragraphs:
    """First paragraphs of articles, as HotpotQA's: each names the next article's title, and what is asked about itself.

    Args:
        seed: Paragraphs of another seed have other words.
        total: Number of paragraphs, at most `NAMES`: no two have the same title.
    """

    seed: int
    total: int

    def write(self, numbers: Sequence[int]) -> list[tuple[str, list[str]]]:
        """Title and sentences of each paragraph.

        The sentences after the first start with a space, as in the release.
        """
        numbers_N = np.asarray(numbers, np.int64)
        shortest, longest = PARAGRAPH_WORDS
        lengths = np.exp(_PARAGRAPH_SIGMA * _normal(draws(self.seed, _LENGTH, numbers_N, 12))) * _PARAGRAPH_MEDIAN
        lengths = np.clip(lengths, shortest, longest).astype(np.int64)
        words = words_of(draws(self.seed, _TEXT, numbers_N, int(lengths.max())))
        rows = []
        for number, length, text in zip(numbers_N.tolist(), lengths.tolist(), words, strict=True):
            title = name(number)
            names = {0: title, 4: answer_name(self.seed, number), 8: name((number + 1) % self.total)}
            first, *others = sentences(_with_names(text, names, length), number)
            rows.append((title, [first, *(" " + sentence for sentence in others)]))
        return rows


def _with_names(words: list[str], names: dict[int, str], length: int) -> list[str]:
    """So many words of a text, of which those at the given places are names, each kept whole in one item."""
    items = words[: length - sum(each.count(" ") for each in names.values())]
    for place, each in names.items():
        items[place : place + 1] = [each]
    return items


def _normal(drawn: NDArray[np.uint64]) -> NDArray[np.float64]:
    """(N,) nearly normal numbers: the sum of twelve uniform ones."""
    return (drawn.astype(np.float64) / 2.0**64).sum(axis=1) - 6.0
