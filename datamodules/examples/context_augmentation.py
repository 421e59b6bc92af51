"""Data augmentation of RE-RAG's training contexts: cropping, answer substitution and word swaps."""

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from common.records import Passage, Question

LOWER_WORD = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")


def crop(passage: Passage, answers: Sequence[str], words: int, rng: random.Random) -> Passage:
    """Crop a passage's text to a random window of `words` words, around an accepted answer if it contains one.

    Early in training a generator learns to read short contexts several times faster than long ones.

    Args:
        passage: The passage; its title stays.
        answers: Accepted answers.
        words: Maximum length of the window; a longer answer is kept completely.
        rng: Source of randomness.
    """
    tokens = passage.text.split()
    if len(tokens) <= words:
        return passage
    spans = []
    for answer in (answer.split() for answer in answers):
        for start in range(len(tokens) - len(answer) + 1):
            window = tokens[start : start + len(answer)]
            if answer and window[:-1] == answer[:-1] and window[-1].startswith(answer[-1]):  # "Paris." ends a sentence
                spans.append((start, start + len(answer)))
    first, last = rng.choice(spans) if spans else (rng.randrange(len(tokens)),) * 2
    start = rng.randint(max(0, last - words), max(0, min(first, len(tokens) - words)))
    return Passage.of(passage.title, " ".join(tokens[start : max(last, start + words)]), passage.source)


def substitute(passages: Sequence[Passage], answer: str, other: str) -> list[Passage]:
    """Replace an answer by another one in all passages, matching whole words (Longpre et al., 2021).

    The answer to a question then changes between epochs, so a generator has to read it instead of memorizing it.
    """
    pattern = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
    return [
        Passage.of(pattern.sub(lambda _: other, p.title), pattern.sub(lambda _: other, p.text), p.source)
        for p in passages
    ]


def swap_words(
    text: str, nearest: Mapping[str, list[str]], share: float, protected: Collection[str], rng: random.Random
) -> str:
    """Replace a share of the lower-case words of a text, each by one of its nearest words, drawn uniformly.

    Args:
        text: The text.
        nearest: Possible replacements of each word; other words stay.
        share: Probability of replacing a word, in [0, 1].
        protected: Words that are never replaced, e.g. those of the answer.
        rng: Source of randomness.
    """

    def replacement(match: re.Match[str]) -> str:
        word = match[0]
        return rng.choice(nearest[word]) if word in nearest and word not in protected and rng.random() < share else word

    return LOWER_WORD.sub(replacement, text)


class AnswerSubstitutes:
    """Draws substitute answers of the same shape, from questions with similar words.

    A year is replaced by a year, and usually a company by a company, because the questions share words.

    Args:
        questions: Questions whose answers are used as substitutes.
    """

    CANDIDATES = 32  # sampled per substitution; the one whose question has the greatest word overlap is used

    def __init__(self, questions: Iterable[Question] = ()) -> None:
        self.by_shape: dict[str, list[tuple[str, str]]] = {}  # shape -> answer and text of its question
        for question in questions:
            for answer in question.answers:
                self.by_shape.setdefault(shape(answer), []).append((answer, question.text))

    @staticmethod
    def _words(question: str) -> frozenset[str]:
        return frozenset(LOWER_WORD.findall(question))

    def draw(self, question: Question, answer: str, rng: random.Random) -> str:
        """A substitute for an answer; the answer itself if there is none of its shape."""
        known = self.by_shape.get(shape(answer))
        if not known:
            return answer
        own = self._words(question.text)
        drawn = [
            (other, self._words(text))
            for other, text in rng.choices(known, k=self.CANDIDATES)
            if other not in question.answers
        ]
        if not drawn:  # only answers of the question itself were sampled
            return answer
        return max(drawn, key=lambda one: len(one[1] & own) / (1 + len(one[1] | own)))[0]


def shape(answer: str) -> str:
    """The shape of an answer: for each word 0 (digit), A (upper case) or a, by its first character."""
    return " ".join("0" if word[0].isdigit() else "A" if word[0].isupper() else "a" for word in answer.split())
