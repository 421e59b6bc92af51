"""Training examples of RE-RAG: a question with selected passages (a context set), and batches of them.

Shape legend: B questions, N contexts per question, M encoded rows of one bucket, T tokens, A answer tokens.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from common.answer_metrics import has_answer
from common.gold_copies import GoldCopies
from common.records import Passage, Question
from datamodules.examples.batches import Batch

ContextSampling = Literal["ranked", "sampled", "gold"]
Labels = Literal["has_answer", "gold"]


@dataclass(frozen=True, slots=True)
class ContextSet:
    """A training or validation example: a question with its contexts."""

    question: Question
    passages: tuple[Passage, ...]
    labels: tuple[bool, ...]  # whether each passage is relevant
    answer: str  # the accepted answer used as target in this epoch; empty if there is none
    scores: tuple[float, ...] = ()  # retriever scores of the passages; empty where contexts are not weighted by them
    grades: tuple[float, ...] = ()  # how relevant, as a share of the question's highest grade; empty: as the labels say
    labelled: bool = True  # False where has-answer says nothing: `labels` are then no statement
    teacher: tuple[float, ...] = ()  # a teacher's scores of the passages, NaN where it gave none; empty without one
    copies: int = field(default=0, compare=False)  # hard negatives left out, as they have a gold passage's text


@dataclass
class Bucket(Batch):
    """M (question, context) rows of similar length, padded together."""

    ids_MT: Tensor
    attention_MT: Tensor
    cells_M: Tensor  # index of each row in the flattened (B, N) grid of its batch


@dataclass
class ContextBatch(Batch):
    """B questions on one rank, with contexts in buckets of similar length; nothing is computed for absent contexts."""

    buckets: list[Bucket]  # in the generator's format; in the estimator's if there is no generator
    estimator_buckets: list[Bucket]  # empty if the estimator reads the same tokens
    answers_BA: Tensor  # token ids of the answers, padded with IGNORE; (B, 0) without a generator
    real_BN: Tensor  # True where a context exists
    grades_BN: Tensor  # how relevant it is, in [0, 1], fp32; -1 for a question without labels
    weight: float  # 1.0; 0.0 for a dummy batch on a rank without data
    step_questions: int  # questions of the optimizer step, over all ranks and accumulated batches
    step_pairs: int  # their contexts
    rows_B: Tensor  # index of each question in the training or validation set
    retriever_BN: Tensor  # retriever scores, fp32; 0 for padding and where contexts are not weighted by them
    teacher_BN: Tensor  # a teacher's scores, fp32; NaN where it gave none, and for padding

    @property
    def examples(self) -> int:
        """Number of question-context rows."""
        return sum(len(bucket.ids_MT) for bucket in self.buckets)

    @property
    def tokens(self) -> int:
        """Number of tokens in all buckets, padding included."""
        return sum(bucket.ids_MT.numel() for bucket in self.buckets)


def pick_contexts(
    question: Question,
    hard_negatives: Sequence[Passage],
    contexts: int,
    context_sampling: ContextSampling,
    rng: random.Random,
) -> list[Passage]:
    """Select at most `contexts` distinct passages of a question.

        ranked     the retriever's first ones, by given scores or in file order, then of
                   `hard_negatives` (the paper: the top 20)
        sampled    all gold passages and random others, shuffled
        gold       random gold passages only, for the warm-up of a generator

    Args:
        question: The question with the passages of its file.
        hard_negatives: Additional candidates, e.g. mined from an index, from `without_copies`.
        contexts: Maximum number of passages.
        context_sampling: How to select them.
        rng: Source of randomness.
    """
    shipped = question.ranking if context_sampling == "ranked" else question.passages
    passages = list({passage.id: passage for passage in (*shipped, *hard_negatives)}.values())
    if context_sampling == "ranked":
        return passages[:contexts]
    gold = [passage for passage in passages if passage.id in question.support]
    gold = rng.sample(gold, min(contexts, len(gold)))
    if context_sampling == "gold":
        return gold
    others = [passage for passage in passages if passage.id not in question.support]
    chosen = gold + rng.sample(others, min(contexts - len(gold), len(others)))
    rng.shuffle(chosen)
    return chosen


def without_copies(question: Question, hard_negatives: Sequence[Passage]) -> list[Passage]:
    """The hard negatives that do not have the text of a gold passage (`common.gold_copies`)."""
    copies = GoldCopies.of(question.gold_passages)
    return [passage for passage in hard_negatives if passage.id in question.support or passage not in copies]


def relevant(question: Question, passages: Sequence[Passage], labels: Labels) -> tuple[bool, ...]:
    """Whether each context is relevant.

    Marked gold or a copy of such a passage, or containing an accepted answer by DPR's has-answer rule.
    """
    if labels == "gold":
        copies = GoldCopies.of(question.gold_passages)
        return tuple(passage.id in question.support or passage in copies for passage in passages)
    return tuple(has_answer(passage.text, question.answers) for passage in passages)


def shares_of_grades(question: Question, passages: Sequence[Passage], labels: Sequence[bool]) -> tuple[float, ...]:
    """How relevant each context is, as a share of the question's highest grade; empty if the file grades none.

    A relevant passage without a grade has the highest of those that it is a copy of, else the grade 1.
    """
    # 0: of passages of a corpus that is not given
    grades = {id_: grade for id_, grade in question.gold.grades if grade}
    if not grades:
        return ()
    graded = [(GoldCopies.of([each]), grades[each.id]) for each in question.gold_passages if each.id in grades]
    found = [
        grades.get(passage.id) or max((grade for copies, grade in graded if passage in copies), default=1.0)
        if is_relevant
        else 0.0
        for passage, is_relevant in zip(passages, labels, strict=True)
    ]
    highest = max(grades.values())
    return tuple(min(1.0, grade / highest) for grade in found)
