"""Batches of RE-RAG's context sets, made from the numbers of their questions. A worker process needs nothing else.

Shape legend: B questions, N contexts per question, M encoded rows of one bucket, T tokens, A answer tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.records import Passage, Question
from datamodules.examples.context_sampling import ContextSampler
from datamodules.examples.context_sets import Bucket, ContextBatch, ContextSampling, ContextSet
from models.context_tokenizer import ContextEncoder
from models.length_batching import length_batches


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The request for a batch."""

    epoch: int  # -1: validation
    rows: list[int]  # of the questions
    step_questions: int  # as in `ContextBatch`
    step_pairs: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ContextTensors:
    """Makes the tensors of a batch.

    Args:
        encoders: Tokenizers of the contexts: a shared one, or the generator's and the estimator's.
        answer_labels: Answers -> token ids, (B, A).
        packed: Whether all contexts of a question form one input.
        tokens_per_bucket: Maximum padded tokens of a bucket.
    """

    encoders: Sequence[ContextEncoder]
    answer_labels: Callable[[Sequence[str]], Tensor]
    packed: bool
    tokens_per_bucket: int

    def __call__(self, chosen: Sequence[ContextSet], request: ContextRequest) -> ContextBatch:
        """The batch of some context sets, which `request` names."""
        counts = [1 if self.packed else len(one.passages) for one in chosen]
        width = max(counts)
        real_BN = torch.arange(width) < torch.tensor(counts)[:, None]
        grades_BN = torch.zeros(real_BN.shape)
        retriever_BN = torch.zeros(real_BN.shape)
        teacher_BN = torch.full(real_BN.shape, torch.nan)
        inputs: list[tuple[int, tuple[str, Sequence[Passage]]]] = []
        for row, one in enumerate(chosen):
            if self.packed:
                inputs.append((row * width, (one.question.text, one.passages)))
                grades_BN[row, 0] = float(any(one.labels))
                continue
            graded = torch.tensor(one.grades or one.labels, dtype=torch.float)
            grades_BN[row, : len(one.labels)] = graded if one.labelled else -1.0
            retriever_BN[row, : len(one.scores)] = torch.tensor(one.scores)
            teacher_BN[row, : len(one.teacher)] = torch.tensor(one.teacher)
            inputs += [(row * width + n, (one.question.text, (p,))) for n, p in enumerate(one.passages)]
        return ContextBatch(
            self._buckets(self.encoders[0], inputs),
            self._buckets(self.encoders[1], inputs) if len(self.encoders) > 1 else [],
            self.answer_labels([one.answer for one in chosen]),
            real_BN,
            grades_BN,
            request.weight,
            request.step_questions,
            request.step_pairs,
            torch.tensor(request.rows),
            retriever_BN,
            teacher_BN,
        )

    def _buckets(
        self, encode: ContextEncoder, inputs: Sequence[tuple[int, tuple[str, Sequence[Passage]]]]
    ) -> list[Bucket]:
        sequences = encode([text for _, text in inputs])
        buckets = []
        for rows in length_batches([len(s) for s in sequences], self.tokens_per_bucket):
            ids_MT, attention_MT = encode.pad([sequences[row] for row in rows])
            buckets.append(Bucket(ids_MT, attention_MT, torch.tensor([inputs[row][0] for row in rows])))
        return buckets


@dataclass(frozen=True, slots=True)
class ContextBatches:
    """Makes batches of requests; a copy in another process makes the same ones.

    Args:
        questions: The training or the validation questions.
        contexts: Maximum number of contexts of each.
        context_sampling: How they are selected.
        draws: Draws them.
        tensors: Makes a batch of them.
    """

    questions: Sequence[Question]
    contexts: int
    context_sampling: ContextSampling
    draws: ContextSampler
    tensors: ContextTensors

    def drawn(self, epoch: int, row: int) -> ContextSet:
        """A question's context set in an epoch, as the model reads it."""
        return self.draws.draw(self.questions[row], self.contexts, self.context_sampling, epoch)

    def __call__(self, request: ContextRequest) -> ContextBatch:
        """The batch of a request."""
        return self.tensors([self.drawn(request.epoch, row) for row in request.rows], request)
