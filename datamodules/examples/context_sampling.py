"""How a question's contexts are drawn in an epoch: selected, labelled and augmented.

A draw depends only on (seed, epoch, question): it is the same on every rank and after a resume, and needs no other
question.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import findable
from common.errors import UserError
from common.progress import track
from common.records import Passage, Question
from datamodules.examples.context_augmentation import LOWER_WORD, AnswerSubstitutes, crop, substitute, swap_words
from datamodules.examples.context_sets import (
    ContextSampling,
    ContextSet,
    Labels,
    pick_contexts,
    relevant,
    shares_of_grades,
    without_copies,
)
from datamodules.formats.teacher_scores import TeacherScores


@dataclass
class ContextSampler:
    """Draws context sets.  The options are explained at `datamodules.rerag.ReRagData`.

    Args:
        hard_negatives: Further candidates by question id.
        labels: What makes a context relevant.
        scored: Whether sets have the retriever's scores.
        seed: Of all draws.
        crop_words: Longest text of a training context; None does not crop.
        crop_growth_words: Added to it in each epoch.
        substitution: Share of training questions whose answer is replaced.
        word_swaps: Share of words that are replaced.
        teacher: Scores that the estimator is to learn.
    """

    hard_negatives: Mapping[str, Sequence[Passage]]
    labels: Labels
    scored: bool
    seed: int
    crop_words: int | None = None
    crop_growth_words: int = 0
    substitution: float = 0.0
    word_swaps: float = 0.0
    teacher: TeacherScores | None = None
    substitutes: AnswerSubstitutes = field(default_factory=AnswerSubstitutes)
    nearest: Mapping[str, list[str]] = field(default_factory=dict)  # words by word

    def selected(
        self, question: Question, contexts: int, context_sampling: ContextSampling, rng: random.Random
    ) -> ContextSet:
        """The contexts of a question with labels and scores, and the accepted answer that is the target, as stored.

        Args:
            question: With all its passages.
            contexts: Maximum number of contexts.
            context_sampling: How to select them.
            rng: `rng_of` this question and epoch.
        """
        mined = self.hard_negatives.get(question.id, ())
        kept = without_copies(question, mined)
        passages = tuple(pick_contexts(question, kept, contexts, context_sampling, rng))
        labels = relevant(question, passages, self.labels)
        scores = self._scores(question, passages)
        grades = shares_of_grades(question, passages, labels) if self.labels == "gold" else ()
        answer = rng.choice(question.answers) if question.answers else ""
        labelled = self.labels == "gold" or bool(findable(question.answers))
        teacher = self.teacher.of(question.text, passages) if self.teacher else ()
        copies = len(mined) - len(kept)
        return ContextSet(question, passages, labels, answer, scores, grades, labelled, teacher, copies)

    def rng_of(self, question: Question, epoch: int) -> random.Random:
        """The source of a question's draws in an epoch; -1 is validation."""
        return random.Random(f"{self.seed}/{epoch}/{question.id}/{question.text}")

    def draw(self, question: Question, contexts: int, context_sampling: ContextSampling, epoch: int) -> ContextSet:
        """The context set of a question in an epoch, in training augmented."""
        rng = self.rng_of(question, epoch)
        one = self.selected(question, contexts, context_sampling, rng)
        return one if epoch < 0 else self._augmented(one, epoch, rng)

    def _scores(self, question: Question, passages: Sequence[Passage]) -> tuple[float, ...]:
        """The retriever scores of contexts, if they weight them; fewer than contexts if some have none."""
        if not self.scored or not question.given_scores:
            return ()
        score_of = dict(zip((p.id for p in question.passages), question.given_scores, strict=True))
        return tuple(score_of[passage.id] for passage in passages if passage.id in score_of)

    def _augmented(self, one: ContextSet, epoch: int, rng: random.Random) -> ContextSet:
        question, answer, passages = one.question, one.answer, one.passages
        if rng.random() < self.substitution and answer not in question.text:
            answer, passages = self._substituted(question, answer, passages, rng)
        if self.crop_words is not None:
            accepted = [*question.answers, answer]
            words = self.crop_words + epoch * self.crop_growth_words
            passages = tuple(crop(passage, accepted, words, rng) for passage in passages)
        if self.nearest:
            question, passages = self._reworded(question, passages, answer, rng)
        return replace(one, question=question, passages=passages, answer=answer)

    def _substituted(
        self, question: Question, answer: str, passages: tuple[Passage, ...], rng: random.Random
    ) -> tuple[str, tuple[Passage, ...]]:
        other = self.substitutes.draw(question, answer, rng)
        changed = tuple(substitute(passages, answer, other))
        return (other, changed) if changed != passages else (answer, passages)  # kept if it occurs in no context

    def _reworded(
        self, question: Question, passages: tuple[Passage, ...], answer: str, rng: random.Random
    ) -> tuple[Question, tuple[Passage, ...]]:
        protected = set(LOWER_WORD.findall(answer))

        def swapped(text: str) -> str:
            return swap_words(text, self.nearest, self.word_swaps, protected, rng)

        return (
            replace(question, text=swapped(question.text)),
            tuple(Passage.of(p.title, swapped(p.text), p.source) for p in passages),
        )


def count_contexts(
    questions: Sequence[Question],
    select: Callable[[Question], ContextSet],
    answered: bool = True,
    labelled: bool = False,
) -> dict[str, NDArray[np.int64]]:
    """Counts of all context sets for a plan and the audit; questions without a context are left out.

    Args:
        questions: All questions.
        select: Question -> its contexts.
        answered: Whether questions without an answer are left out, too; else those of them without a relevant context.
        labelled: Whether those are left out whose contexts have no labels.

    Returns:
        `place` of each question that has a set, and of its contexts the number (`contexts`), the number of relevant
        ones (`relevant`), of those with a retriever's score (`scored`), and of their characters (`characters`); the
        number of hard negatives left out as copies of gold passages (`copies`).
    """
    rows = []
    for place, question in enumerate(track(questions, len(questions), "selecting and labelling contexts, questions")):
        if not question.answers and answered:
            continue
        one = select(question)
        if one.passages and (question.answers or any(one.labels)) and (one.labelled or not labelled):
            characters = sum(len(passage.text) for passage in one.passages)
            rows.append((place, len(one.passages), sum(one.labels), len(one.scores), characters, one.copies))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    names = ("place", "contexts", "relevant", "scored", "characters", "copies")
    return dict(zip(names, columns, strict=True))


def check_scores(questions: Sequence[Question], counted: Mapping[str, NDArray[np.int64]], files: Sequence[str]) -> None:
    """Raise UserError if some contexts have no retriever score, by which they are weighted.

    Args:
        questions: Those that have contexts.
        counted: Of `count_contexts`.
        files: Where they are from.
    """
    bare = np.flatnonzero(counted["scored"] < counted["contexts"])
    if len(bare):
        raise UserError(
            f"model.relevance retriever needs a retriever score of every context, and {len(bare)} of {len(questions)} "
            f"questions of {list(files)} lack some (the first is {questions[bare[0]].id!r}). Type `python infer.py "
            "score --questions FILE --out FILE` for each file, and name what it writes; passages of "
            "data.hard_negatives have no scores."
        )
