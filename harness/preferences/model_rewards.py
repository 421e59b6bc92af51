"""Rewards that a model gives.

A sentence encoder without search, a reader's answers, the probability of the gold answer.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.answer_metrics import NORMALIZATIONS, Normalization, exact_match, f1, has_answer
from common.files import sha256
from common.ranges import PositiveInt, Precision
from common.records import Passage, Question, Ranked, clean, nfkc
from harness.indexing.passage_store import indexed_text
from harness.interfaces import Reader
from harness.preferences.rewards import NO_ANSWER
from harness.runtime.loading import load
from models.pretrained import MINILM
from models.serving_manifest import MANIFEST

if TYPE_CHECKING:
    from harness.indexing.sentence_encoder import SentenceEncoder

NO_TEXT = "no text of a gold passage"


class CosineGain:
    """How much closer a rewrite is to the gold passages than its question: the mean over them of

        max over its queries of cos(query, passage)  -  cos(question, passage)

    No search is needed (TongSearch-QR's reward).

    Args:
        encoder: Folder or hub id of a sentence encoder.
        device: auto, cpu or cuda.
        precision: auto, fp32 or bf16.

    Raises:
        MissingInputError: If the encoder is not found.
        UserError: If it is not supported, or the device is not possible here.
    """

    depth = 0  # it needs no search

    def __init__(self, encoder: str = MINILM, device: str = "auto", precision: Precision = "auto") -> None:
        self.name, self.device, self.precision = encoder, device, precision

    def load(self) -> None:
        """Load the encoder."""
        _ = self.encoder

    @cached_property
    def encoder(self) -> "SentenceEncoder":
        """Of queries and passages."""
        from harness.indexing.sentence_encoder import SentenceEncoder

        return SentenceEncoder(self.name, self.device, precision=self.precision)

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        return {"reward": "cos(rewrite, gold) - cos(question, gold)", "encoder": self.encoder.recipe}

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question."""
        return None if question.gold else NO_TEXT

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, -2 to 2."""
        asked = [clean(question.text) for question in questions]
        texts = list(dict.fromkeys([*asked, *(query for row in queries for query in row)]))
        passages = list(dict.fromkeys(indexed_text(each) for question in questions for each in question.gold))
        query_of = dict(zip(texts, _unit(self.encoder.encode_queries(texts)), strict=True))
        passage_of = dict(zip(passages, _unit(self.encoder.encode_recurring(passages)), strict=True))
        rewards = []
        for question, text, row in zip(questions, asked, queries, strict=True):
            gold_GD = np.stack([passage_of[indexed_text(each)] for each in question.gold])
            cosines_GQ = gold_GD @ np.stack([query_of[query] for query in row]).T
            rewards.append(float((cosines_GQ.max(axis=1) - gold_GD @ query_of[text]).mean()))
        return rewards


def _unit(vectors_ND: np.ndarray) -> np.ndarray:
    return vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True).clip(1e-12)


class AnswerQuality:
    """RRR's reward: EM + F1 of a reader's answer, + 1 if a passage that it reads has a gold answer, else - 1.

    From Ma et al. 2023.

    Args:
        reader: Answers from the passages, e.g. harness.readers.t5.PackedReader.
        k: Passages that it reads.
        normalization: Of answers: squad, triviaqa or re_rag.
    """

    def __init__(self, reader: Reader, k: PositiveInt = 10, normalization: Normalization = "squad") -> None:
        self.reader, self.k, self.normalization = reader, k, normalization
        self.depth = k

    def load(self) -> None:
        """Load the reader."""
        load(self.reader)

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        from harness.runtime.provenance import configuration

        return {
            "reward": "EM + F1 + (1 if a passage has an answer, else -1)", "k": self.k,
            "normalization": self.normalization, "reader": configuration(self.reader),
        }  # fmt: skip

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question."""
        return None if question.answers else NO_ANSWER

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, -1 to 3."""
        return per_reading(questions, [hits[: self.k] for hits in found], self._of)

    def _of(self, questions: Sequence[Question], read: Sequence[Sequence[Ranked]]) -> list[float]:
        normalize = NORMALIZATIONS[self.normalization]
        rewards = []
        for question, hits, answer in zip(questions, read, self.reader.read(questions, read), strict=True):
            hit = any(has_answer(each.passage.text, question.answers) for each in hits)
            text, golds = nfkc(answer.text), [*map(nfkc, question.answers)]
            scores = [measure(text, golds, normalize) for measure in (exact_match, f1)]
            rewards.append((sum(scores) if answer.text else 0.0) + (1.0 if hit else -1.0))
        return rewards


class AnswerProbability:
    """Probability of the gold answer, marginalized over the first K passages by RE-RAG's models (Eq. 5-6).

    The estimator and the generator compute AdaQR's reward, with the estimator's relevance as P(passage | question).

        P(a | q) = sum over the passages of  P_RE(passage | q) P_G(a | q, passage);   a: the question's first answer

    Passages are judged and read with the question, not with the rewrite.  0 if nothing is found.

    Args:
        serving: Folder with an estimator and a generator, e.g. checkpoints/rerag-world/serving.
        k: Passages that are read.
        device: auto, cpu or cuda.
        precision: auto, fp32 or bf16.

    Raises:
        UserError: If the generator reads all documents in one call, or the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or lacks the estimator or the generator.
    """

    def __init__(self, serving: Path, k: PositiveInt = 5, device: str = "auto", precision: Precision = "auto") -> None:
        from harness.readers.t5 import ContextReader

        self.reader = ContextReader(Path(serving), "thorough", device, precision)
        self.serving, self.k, self.depth = serving, k, k

    def load(self) -> None:
        """Load the estimator and the generator."""
        self.reader.load()

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        return {
            "reward": "marginal probability of the first gold answer", "k": self.k, "serving": str(self.serving),
            "sha256": sha256(Path(self.serving) / MANIFEST),
        }  # fmt: skip

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question."""
        return None if question.answers else NO_ANSWER

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, 0 to 1."""
        return per_reading(questions, [hits[: self.k] for hits in found], self._of)

    def _of(self, questions: Sequence[Question], read: Sequence[Sequence[Ranked]]) -> list[float]:
        """The rewards of distinct rows; each (question, passage) is scored and read once."""
        import torch

        from harness.retrievers.rerank import relevance
        from models.rerag.marginal_likelihood import log_mixture

        estimator, generator = self.reader.model.estimator, self.reader.model.generator
        assert estimator is not None  # required by ContextReader
        assert generator is not None
        passages: list[list[Passage]] = [[hit.passage for hit in hits] for hits in read]
        texts = [question.text for question in questions]
        logits = relevance(estimator, texts, passages)
        pairs = {
            (question.text, question.answers[0], passage.id): passage
            for question, own in zip(questions, passages, strict=True)
            for passage in own
        }
        sequences = generator.encode([(text, [passage]) for (text, _, _), passage in pairs.items()])
        logps = dict(zip(pairs, generator.logprobs(sequences, [answer for _, answer, _ in pairs]), strict=True))
        rewards = []
        for question, own, relevance_N in zip(questions, passages, logits, strict=True):
            if not own:
                rewards.append(0.0)
                continue
            answer_N = [logps[question.text, question.answers[0], passage.id] for passage in own]
            weights_1N = torch.tensor([relevance_N], dtype=torch.float64) / self.reader.model.relevance_temperature
            answer_1N = torch.tensor([answer_N], dtype=torch.float64)
            rewards.append(
                float(log_mixture(weights_1N, answer_1N, torch.ones_like(answer_1N, dtype=torch.bool)).exp())
            )
        return rewards


def per_reading(
    questions: Sequence[Question],
    found: Sequence[Sequence[Ranked]],
    rewards: Callable[[Sequence[Question], Sequence[Sequence[Ranked]]], list[float]],
) -> list[float]:
    """The reward of every row, computed once for rows of a question with the same passages in the same order.

    Args:
        questions: Of every row.
        found: The passages of every row, as they are read.
        rewards: Computes the rewards of distinct rows.
    """
    keys = [(q.id, q.text, tuple(hit.passage.id for hit in hits)) for q, hits in zip(questions, found, strict=True)]
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    rows = sorted(first.values())
    value = dict(zip(rows, rewards([questions[row] for row in rows], [found[row] for row in rows]), strict=True))
    return [value[first[key]] for key in keys]
