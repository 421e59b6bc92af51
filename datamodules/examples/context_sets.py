"""Context sets: one question with the passages RE-RAG trains on, and their batches.

Shape legend: B questions, N contexts per question, M encoded rows of one bucket, T tokens, A answer tokens.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from common.answer_metrics import has_answer
from common.records import Passage, Question

Pick = Literal["ranked", "sampled", "gold"]
Labels = Literal["has_answer", "gold"]


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
    answers_BA: (
        Tensor  # token ids of the answers, padded with models.rerag.generator.IGNORE; (B, 0) without a generator
    )
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


def relevant(question: Question, passage: Passage, labels: Labels) -> bool:
    """Whether a context counts as relevant: gold in its file, or holding an accepted answer by DPR's rule."""
    if labels == "gold":
        return passage.id in question.support
    return has_answer(passage.text, question.answers)
