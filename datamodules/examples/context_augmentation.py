"""Data augmentation for RE-RAG's training contexts: cropped windows, substituted answers, swapped words."""

import random
import re
from collections.abc import Collection, Sequence

from common.records import Passage, Question

LOWER_WORD = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")


def crop(passage: Passage, answers: Sequence[str], words: int, rng: random.Random) -> Passage:
    """A window of at most so many words of a passage, around an accepted answer where the passage spells one.

    A young generator learns to read short contexts several times faster than long ones.  The title stays.

    Args:
        passage: To cut.
        answers: Accepted answers.
        words: Length of the window; the answer is kept whole even if it is longer.
        rng: Where the window lies.
    """
    held = passage.text.split()
    if len(held) <= words:
        return passage
    spots = []
    for answer in (answer.split() for answer in answers):
        for start in range(len(held) - len(answer) + 1):
            window = held[start : start + len(answer)]
            if answer and window[:-1] == answer[:-1] and window[-1].startswith(answer[-1]):  # "Paris." ends a sentence
                spots.append((start, start + len(answer)))
    first, last = rng.choice(spots) if spots else (rng.randrange(len(held)),) * 2
    start = rng.randint(max(0, last - words), max(0, min(first, len(held) - words)))
    return Passage.of(passage.title, " ".join(held[start : max(last, start + words)]), passage.source)


def substitute(passages: Sequence[Passage], answer: str, other: str) -> list[Passage]:
    """The passages with one answer written in the place of another, as whole words (Longpre et al., 2021).

    What a generator has to read instead of recalling: the same question has another answer every time.
    """
    pattern = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
    return [
        Passage.of(pattern.sub(lambda _: other, p.title), pattern.sub(lambda _: other, p.text), p.source)
        for p in passages
    ]


def swap_words(
    text: str, nearest: dict[str, list[str]], share: float, kept: Collection[str], rng: random.Random
) -> str:
    """The text with a share of its lower-case words each replaced by one of its nearest words, drawn evenly.

    Args:
        text: To change.
        nearest: For a word, those that may stand in for it; other words stay.
        share: Of the words, in [0, 1].
        kept: Words that stay whatever the draw, e.g. an answer's.
        rng: Source of choice.
    """

    def other(match: re.Match[str]) -> str:
        word = match[0]
        return rng.choice(nearest[word]) if word in nearest and word not in kept and rng.random() < share else word

    return LOWER_WORD.sub(other, text)


class AnswerSubstitutes:
    """Answers that can stand in for others: of the same shape, to a question that asks in alike words.

    A year stands in for a year and, as far as the questions' words tell, a company for a company and not for a person.

    Args:
        questions: Whose answers there are.
    """

    CANDIDATES = 32  # drawn for each substitution; the one whose question shares most words is taken

    def __init__(self, questions: Sequence[Question] = ()) -> None:
        self.by_shape: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for question in questions:
            for answer in question.answers:
                self.by_shape.setdefault(shape(answer), []).append((answer, self._words(question)))

    @staticmethod
    def _words(question: Question) -> frozenset[str]:
        return frozenset(LOWER_WORD.findall(question.text))

    def draw(self, question: Question, answer: str, rng: random.Random) -> str:
        """Another answer for a question, or the same where nothing is like it."""
        known = self.by_shape.get(shape(answer))
        if not known:
            return answer
        own = self._words(question)
        drawn = [one for one in rng.choices(known, k=self.CANDIDATES) if one[0] not in question.answers]
        if not drawn:  # the question itself, which is likest of all, may be among the known ones
            return answer
        return max(drawn, key=lambda one: len(one[1] & own) / (1 + len(one[1] | own)))[0]


def shape(answer: str) -> str:
    """What an answer looks like: per word 0, A or a."""
    return " ".join("0" if word[0].isdigit() else "A" if word[0].isupper() else "a" for word in answer.split())
