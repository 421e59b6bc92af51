"""RE-RAG's reader: one candidate answer per context, marginalized over contexts (Sections 2.1-2.2).

`fast` sums P_RE over the contexts that generate the same string; `thorough` scores every distinct candidate under every
context.  Each context is encoded once.  Shape legend: N contexts of a question, A distinct candidates.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from common.records import Passage
from models.devices import autocast
from models.rerag.generator import Encoded, Generator
from models.rerag.marginal_likelihood import log_generated, log_joint

Marginal = Literal["thorough", "fast"]  # of a generator that scores given answers
AnyMarginal = Literal["thorough", "generated", "fast"]  # `generated`: each answer is scored only under its own contexts
TOKENS_PER_GROUP = 131_072  # context tokens whose encoder states are in memory at once


@dataclass(frozen=True, slots=True)
class MarginalReading:
    """The answer to one question, with its candidates and the share of each context."""

    text: str
    logprob: float  # log P(text | q), nats; for `fast` the log of its share of P_RE
    shares: tuple[float, ...]  # P(c_j | text, q): contribution of each context to the answer; sums to 1
    candidates: dict[str, float]  # distinct candidate -> its log-probability, nats
    written: tuple[str, ...]  # the answer generated from each context alone
    failed: tuple[str, ...] = ()  # per context why there is no answer, empty if there is one; empty if none failed

    @property
    def answer_logprob(self) -> float | None:
        """`logprob`; None if no context gave an answer."""
        return self.logprob if self.candidates else None


@dataclass(frozen=True, slots=True)
class AnswerMatrix:
    """The generator's answers and scores for one question, before weighting by relevance; reusable for any subset."""

    written: tuple[str, ...]  # N: the answer generated from each context alone
    candidates: tuple[str, ...]  # A: the distinct answers, in order of appearance
    # log P_G(candidate | q, context), nats, -inf where `generated` has none; None when `fast`
    answer_logp_AN: Tensor | None
    failed: tuple[str, ...] = ()  # as in `MarginalReading`: the prior is over the other contexts

    def subset(self, contexts: Sequence[int]) -> "AnswerMatrix":
        """The matrix restricted to the contexts with the given indices."""
        failed = tuple(self.failed[i] for i in contexts) if self.failed else ()
        matrix = AnswerMatrix.of(tuple(self.written[i] for i in contexts), None, failed)
        if self.answer_logp_AN is None:
            return matrix
        rows = [self.candidates.index(text) for text in matrix.candidates]
        return replace(matrix, answer_logp_AN=self.answer_logp_AN[rows][:, list(contexts)])

    @classmethod
    def of(
        cls, written: tuple[str, ...], answer_logp_AN: Tensor | None, failed: tuple[str, ...] = ()
    ) -> "AnswerMatrix":
        """A matrix whose candidates are the distinct answers of contexts that did not fail, as they appear."""
        why = failed or ("",) * len(written)
        candidates = tuple(dict.fromkeys(text for text, error in zip(written, why, strict=True) if not error))
        return cls(written, candidates, answer_logp_AN, failed if any(failed) else ())


class MarginalReader:
    """Generates an answer from each context and marginalizes over a question's contexts.

    Args:
        generator: In evaluation mode, on its device.
        marginal: `thorough` or `fast`.
        max_answer_tokens: Maximum length of a generated answer, in tokens.
        tokens_per_batch: Maximum padded context tokens per forward pass; by device when None.
    """

    def __init__(
        self,
        generator: Generator,
        marginal: Marginal = "thorough",
        max_answer_tokens: int = 32,
        tokens_per_batch: int | None = None,
    ) -> None:
        self.generator, self.marginal, self.max_answer_tokens = generator, marginal, max_answer_tokens
        self.tokens_per_batch = tokens_per_batch

    @property
    def spent(self) -> dict[str, float]:
        """Costs so far."""
        return {"tokens": float(self.generator.tokens_read)}

    def read(
        self, questions: Sequence[str], contexts: Sequence[Sequence[Passage]], relevance: Sequence[Sequence[float]]
    ) -> list[MarginalReading]:
        """One reading per question, in order; a question without contexts gets an empty answer of probability 1.

        Args:
            questions: Question texts.
            contexts: Passages of each question, any number.
            relevance: Relevance logit of each passage.
        """
        matrices = self.matrices(questions, contexts)
        return [
            weigh(matrix, torch.tensor(scores, dtype=torch.float32))
            for matrix, scores in zip(matrices, relevance, strict=True)
        ]

    @torch.no_grad()  # in inference mode autocast would make its copies of the weights again for every token
    def matrices(self, questions: Sequence[str], contexts: Sequence[Sequence[Passage]]) -> list[AnswerMatrix]:
        """Candidates and their scores for every question, in order: the input of `weigh`.  Arguments as in `read`."""
        sequences = self.generator.encode(
            [(q, [passage]) for q, passages in zip(questions, contexts, strict=True) for passage in passages]
        )
        self.generator.tokens_read += sum(map(len, sequences))
        matrices, start = [], 0
        for group in self._groups(contexts, [len(s) for s in sequences]):
            sizes = [len(contexts[q]) for q in group]
            end = start + sum(sizes)
            matrices += self._read(sequences[start:end], sizes)
            start = end
        return matrices

    def _groups(self, contexts: Sequence[Sequence[Passage]], lengths: Sequence[int]) -> Iterator[list[int]]:
        """Groups of consecutive questions whose encoder states fit in memory together."""
        group: list[int] = []
        held, start = 0, 0
        for question, passages in enumerate(contexts):
            tokens = sum(lengths[start : start + len(passages)])
            start += len(passages)
            if group and held + tokens > TOKENS_PER_GROUP:
                yield group
                group, held = [], 0
            group.append(question)
            held += tokens
        if group:
            yield group

    def _read(self, sequences: Sequence[list[int]], sizes: Sequence[int]) -> list[AnswerMatrix]:
        generator, device = self.generator, self.generator.network.device
        batches: list[tuple[list[int], Encoded]] = []
        written = [""] * len(sequences)
        with autocast(device, self.generator.inference_dtype):
            for rows, *padded in generator.batches(sequences, self.tokens_per_batch, "reading contexts"):
                encoded = generator.encode_contexts(*padded)
                batches.append((rows, encoded))
                for row, text in zip(rows, generator.write(encoded, self.max_answer_tokens), strict=True):
                    written[row] = text
        bounds = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        per_question = [written[a:b] for a, b in itertools.pairwise(bounds)]
        distinct = [list(dict.fromkeys(texts)) for texts in per_question]
        scored = self._score(batches, sizes, distinct) if self.marginal == "thorough" else [None] * len(sizes)
        return [AnswerMatrix.of(tuple(texts), scores_AN) for texts, scores_AN in zip(per_question, scored, strict=True)]

    def _score(
        self, batches: Sequence[tuple[list[int], Encoded]], sizes: Sequence[int], distinct: Sequence[list[str]]
    ) -> list[Tensor]:
        """log P_G of every distinct candidate under every context, (A, N) per question."""
        question_of = [question for question, size in enumerate(sizes) for _ in range(size)]
        place_of = [place for size in sizes for place in range(size)]
        scored = [torch.zeros(len(texts), size) for texts, size in zip(distinct, sizes, strict=True)]
        device = self.generator.network.device
        with autocast(device, self.generator.inference_dtype):
            for rows, encoded in batches:
                pairs = [(place, a) for place, row in enumerate(rows) for a in range(len(distinct[question_of[row]]))]
                for start in range(0, len(pairs), len(rows)):  # the batch size of the encoder
                    chunk = pairs[start : start + len(rows)]
                    answers = [distinct[question_of[rows[place]]][a] for place, a in chunk]
                    labels = self.generator.labels(answers).to(device)
                    places = torch.tensor([place for place, _ in chunk], device=device)
                    logp = self.generator.answer_logp(encoded.rows(places), labels).cpu()
                    for (place, a), value in zip(chunk, logp, strict=True):
                        scored[question_of[rows[place]]][a, place_of[rows[place]]] = value
        return scored


def weigh(matrix: AnswerMatrix, relevance_N: Tensor) -> MarginalReading:
    """Marginalize over contexts and choose the best candidate: `fast` if the candidates are not scored.

    Args:
        matrix: The generator's answers and scores.
        relevance_N: Relevance logits of the contexts, fp32.
    """
    if not matrix.candidates:
        return MarginalReading("", 0.0, (0.0,) * len(matrix.written), {}, matrix.written, matrix.failed)
    read_N = torch.tensor([not error for error in matrix.failed or ("",) * len(matrix.written)])
    answer_logp_AN = matrix.answer_logp_AN
    if answer_logp_AN is None:
        answer_logp_AN = log_generated(matrix.written, matrix.candidates)
    joint_AN = log_joint(relevance_N, answer_logp_AN, read_N)
    marginal_A = joint_AN.logsumexp(dim=1)
    best = int(marginal_A.argmax())
    return MarginalReading(
        matrix.candidates[best],
        float(marginal_A[best]),
        tuple(joint_AN[best].softmax(dim=0).tolist()),
        dict(zip(matrix.candidates, marginal_A.tolist(), strict=True)),
        matrix.written,
        matrix.failed,
    )
