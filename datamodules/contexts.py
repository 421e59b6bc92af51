"""Context sets: one question with the passages RE-RAG trains on, and their batches.

Shape legend: B questions, N contexts per question, M encoded rows of one bucket, T tokens, A answer tokens.
"""

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from common.answer_metrics import has_answer
from common.records import Passage, Question

Pick = Literal["ranked", "sampled", "gold"]
Labels = Literal["has_answer", "gold"]
LOWER_WORD = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")


@dataclass(frozen=True, slots=True)
class ContextSet:
    """What one question is trained or validated on."""

    question: Question
    passages: tuple[Passage, ...]
    labels: tuple[bool, ...]  # whether each passage is relevant
    answer: str  # the accepted answer that is learnt in this epoch


@dataclass
class Bucket:
    """M (question, context) rows of alike length."""

    ids_MT: Tensor
    attention_MT: Tensor
    cells_M: Tensor  # position of each row in the flattened (B, N) of its batch


@dataclass
class ContextBatch:
    """B questions on one rank, their contexts in buckets of alike length; nothing is computed for absent contexts."""

    buckets: list[Bucket]  # in the generator's format, or in the estimator's where there is no generator
    estimator_buckets: list[Bucket]  # empty where the estimator reads the same tokens
    answers_BA: Tensor  # token ids of the answers, padded with models.generator.IGNORE; (B, 0) without a generator
    real_BN: Tensor  # True where a context exists
    labels_BN: Tensor  # True where it is relevant
    weight: float  # 1.0, or 0.0 for a batch that only keeps an otherwise empty part going
    step_questions: int  # questions of the whole optimizer step: all ranks, all accumulated batches
    step_pairs: int  # their contexts
    rows_B: Tensor  # position of each question in the epoch's (or the validation set's) list

    @property
    def examples(self) -> int:
        """Question-context rows."""
        return sum(len(bucket.ids_MT) for bucket in self.buckets)

    @property
    def tokens(self) -> int:
        """Tokens of all buckets, padding included."""
        return sum(bucket.ids_MT.numel() for bucket in self.buckets)


def pick_contexts(
    question: Question, more: Sequence[Passage], contexts: int, pick: Pick, rng: random.Random
) -> list[Passage]:
    """At most `contexts` distinct passages of a question.

        ranked     in file order, then `more`: the first ones (the paper: the retriever's top 20)
        sampled    all gold ones, then a random choice of the others, all shuffled
        gold       gold ones alone, a random choice of them: what a generator learns to read on

    Args:
        question: With the passages its file ships.
        more: Further candidates, e.g. mined from an index.
        contexts: How many.
        pick: Which.
        rng: Source of choice and order.
    """
    passages = list({passage.id: passage for passage in (*question.passages, *more)}.values())
    if pick == "ranked":
        return passages[:contexts]
    gold = [passage for passage in passages if passage.id in question.support]
    gold = rng.sample(gold, min(contexts, len(gold)))
    if pick == "gold":
        return gold
    others = [passage for passage in passages if passage.id not in question.support]
    chosen = gold + rng.sample(others, min(contexts - len(gold), len(others)))
    rng.shuffle(chosen)
    return chosen


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


class StandIns:
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


def relevant(question: Question, passage: Passage, labels: Labels) -> bool:
    """Whether a context counts as relevant: gold in its file, or holding an accepted answer by DPR's rule."""
    if labels == "gold":
        return passage.id in question.support
    return has_answer(passage.text, question.answers)
