"""RE-RAG's context sets by brute force: every file in memory, every question drawn when it is asked for.

What `datamodules.rerag` computed before questions were stored on disk, kept as the definition of its draws.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from common.records import Passage, Question
from common.validation_split import validation_share
from datamodules.examples.context_augmentation import LOWER_WORD, crop, shape, substitute, swap_words
from datamodules.examples.context_sets import ContextSampling, ContextSet, Labels, pick_contexts, relevant
from datamodules.formats.reading import read_questions
from tests.helpers.mined_files import read_mined


class ContextReference:
    """Training and validation questions with their draws.

    Args:
        files: Layout and path of each training file.
        held_out: The same of validation files; a hash split when empty.
        fraction: Of the hash split.
        hard_negatives: Files of mined passages.
        labels: What makes a context relevant.
        seed: Of the draws.
        crop_words: As in the data module.
        crop_growth_words: As in the data module.
        substitution: As in the data module.
        word_swaps: As in the data module.
    """

    def __init__(
        self, files: Sequence[tuple[str, str]], held_out: Sequence[tuple[str, str]] = (), fraction: float = 0.3,
        hard_negatives: Sequence[str] = (), labels: Labels = "has_answer", seed: int = 0, crop_words: int | None = None,
        crop_growth_words: int = 0, substitution: float = 0.0, word_swaps: float = 0.0,
    ) -> None:  # fmt: skip
        questions, known = self._distinct(files), self._distinct(held_out)
        if held_out:
            texts = {question.text for question in known}
            self.training, self.validation = [q for q in questions if q.text not in texts], known
        else:
            self.training = [q for q in questions if validation_share(q) >= fraction]
            self.validation = [q for q in questions if validation_share(q) < fraction]
        self.hard_negatives, self.labels, self.seed, self.word_swaps = (
            read_mined(hard_negatives),
            labels,
            seed,
            word_swaps,
        )
        self.crop_words, self.crop_growth_words, self.substitution = crop_words, crop_growth_words, substitution
        self.by_shape: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self.nearest: dict[str, list[str]] = {}

    def usable(
        self, questions: Sequence[Question], contexts: int, context_sampling: ContextSampling, epoch: int
    ) -> list[Question]:
        """The questions that have an answer and a context."""
        return [q for q in questions if q.answers and self.draw(q, contexts, context_sampling, epoch).passages]

    def learn_substitutes(self, questions: Sequence[Question]) -> None:
        """Let the answers of these questions stand for each other."""
        for question in questions:
            for answer in question.answers:
                words = frozenset(LOWER_WORD.findall(question.text))
                self.by_shape.setdefault(shape(answer), []).append((answer, words))

    def draw(self, question: Question, contexts: int, context_sampling: ContextSampling, epoch: int) -> ContextSet:
        """The context set of a question in an epoch; -1 is validation."""
        rng = random.Random(f"{self.seed}/{epoch}/{question.id}/{question.text}")
        passages = tuple(
            pick_contexts(question, self.hard_negatives.get(question.id, ()), contexts, context_sampling, rng)
        )
        labels = relevant(question, passages, self.labels)
        answer = rng.choice(question.answers)
        if epoch >= 0 and rng.random() < self.substitution and answer not in question.text:
            other = self._substitute(question, answer, rng)
            changed = tuple(substitute(passages, answer, other))
            answer, passages = (other, changed) if changed != passages else (answer, passages)
        if self.crop_words is not None and epoch >= 0:
            words = self.crop_words + epoch * self.crop_growth_words
            passages = tuple(crop(passage, [*question.answers, answer], words, rng) for passage in passages)
        if self.nearest and epoch >= 0:
            kept = set(LOWER_WORD.findall(answer))
            question = replace(question, text=swap_words(question.text, self.nearest, self.word_swaps, kept, rng))
            passages = tuple(
                Passage.of(p.title, swap_words(p.text, self.nearest, self.word_swaps, kept, rng), p.source)
                for p in passages
            )
        return ContextSet(question, passages, labels, answer)

    def _substitute(self, question: Question, answer: str, rng: random.Random) -> str:
        known = self.by_shape.get(shape(answer))
        if not known:
            return answer
        own = frozenset(LOWER_WORD.findall(question.text))
        drawn = [one for one in rng.choices(known, k=32) if one[0] not in question.answers]
        return max(drawn, key=lambda one: len(one[1] & own) / (1 + len(one[1] | own)))[0] if drawn else answer

    @staticmethod
    def _distinct(files: Sequence[tuple[str, str]]) -> list[Question]:
        found: dict[str, Question] = {}
        for layout, path in files:
            for question in read_questions(layout, path):
                found.setdefault(question.text, question)
        return list(found.values())
