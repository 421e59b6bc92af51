"""Everything that RE-RAG's tables are made of, computed once per question: candidates with both scores, and what the
generator makes of each context.  All weightings, sub-sets and numbers of contexts are derived from it.

Shape legend: C candidates of a question, N contexts that were read, A distinct answers.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.errors import UserError
from common.records import Passage, Question
from harness.evaluation.serialization import pack_matrix, pack_passages, unpack_matrix, unpack_passages
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import RelevanceModel, Retriever
from harness.retrievers.rerank import relevance
from harness.runtime.resumable import ResumableBatches
from models.rerag.marginal_reader import Marginal, MarginalReader, Matrix, Reading, weigh

Ranker = Literal["retriever", "estimator"]
STAGES = ("retrieval", "scoring", "reading")
QUESTIONS_AT_ONCE = 32  # bounds the memory of tokens and of encoder states


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One question's candidates as the retriever ranked them, best first."""

    passages: tuple[Passage, ...]
    scores_C: NDArray[np.float64]


@dataclass(slots=True)
class CandidateSet:
    """One question's candidates, in the retriever's order."""

    question: Question
    passages: tuple[Passage, ...]
    retriever_C: NDArray[np.float64]  # retriever scores divided by the temperature
    relevance_C: NDArray[np.float64]  # the estimator's logits
    holds_C: NDArray[np.bool_]  # DPR's has-answer
    places: dict[int, int] = field(default_factory=dict)  # candidate -> its column in the matrix
    matrix: Matrix | None = None
    relevance_temperature: float = 1.0  # divides the logits where `thorough` weighs by them

    def order(self, by: Ranker) -> list[int]:
        """Candidates, best first; the retriever's order breaks ties."""
        if by == "retriever":
            return list(range(len(self.passages)))
        return _best_first(self.relevance_C)

    def weights(self, by: Ranker, marginal: Marginal) -> NDArray[np.float64]:
        """Logits of the prior over contexts."""
        if by == "retriever":
            return self.retriever_C
        return self.relevance_C / (self.relevance_temperature if marginal == "thorough" else 1.0)

    def read(self, contexts: Ranker, weights: Ranker, count: int, marginal: Marginal) -> Reading:
        """The answer from the first `count` contexts of one ranker under the weights of one.

        Raises:
            KeyError: If one of the contexts was not read.
        """
        chosen = self.order(contexts)[:count]
        assert self.matrix is not None
        matrix = self.matrix.subset([self.places[candidate] for candidate in chosen])
        if marginal == "fast":
            matrix = replace(matrix, answer_logp_AN=None)
        return weigh(matrix, torch.tensor(self.weights(weights, marginal)[chosen], dtype=torch.float32))


def retrieve(
    questions: Sequence[Question], retriever: Retriever | None, encoder: SentenceEncoder | None, candidates: int
) -> list[Retrieved]:
    """The candidates of every question: the retriever's best, or all of its own, ranked by the encoder's cosine.

    Raises:
        UserError: If a question has none of its own and there is no retriever.
    """
    if retriever is not None:
        found = retriever.search([question.text for question in questions], candidates)
        return [Retrieved(tuple(h.passage for h in hits), np.array([h.score for h in hits], float)) for hits in found]
    assert encoder is not None
    for question in questions:
        if not question.passages:
            raise UserError(
                f"question {question.id!r} comes without passages and the strategy has no retriever: "
                "configure --strategy.init_args.retriever, or name a file that ships passages."
            )
    texts = {passage.id: indexed_text(passage) for question in questions for passage in question.passages}
    row_of = {id_: row for row, id_ in enumerate(texts)}
    passages_PD = _unit(encoder.encode_passages(list(texts.values())))
    queries_QD = _unit(encoder.encode_queries([question.text for question in questions]))
    sourced = []
    for question, query_D in zip(questions, queries_QD, strict=True):
        cosine_C = passages_PD[[row_of[passage.id] for passage in question.passages]] @ query_D
        order = np.argsort(-cosine_C, kind="stable")
        sourced.append(Retrieved(tuple(question.passages[i] for i in order), cosine_C[order].astype(float)))
    return sourced


def holding(question: Question, passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """Which passages hold one of the question's answers, by DPR's rule."""
    return np.array([has_answer(passage.text, question.answers) for passage in passages], dtype=bool)


def collect_candidates(
    questions: Sequence[Question],
    model: RelevanceModel,
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    contexts: int,
    temperature: float = 1.0,
    kept: ResumableBatches | None = None,
) -> tuple[list[CandidateSet], dict[str, float]]:
    """Score every candidate once, read every context once that either ranker keeps.

    Args:
        questions: All with answers.
        model: With an estimator; without a generator nothing is read.
        retriever: None for the questions' own passages.
        encoder: Ranks those; None with a retriever.
        candidates: How many to ask of the retriever.
        contexts: How many to keep.
        temperature: By which the retriever's scores are divided.
        kept: Where finished batches outlive an interruption; it must depend on all but the temperature.

    Returns:
        The pools, and seconds per stage of all questions together.
    """
    assert model.estimator is not None
    estimator = model.estimator
    reader = MarginalReader(model.generator, "thorough", model.max_answer_tokens) if model.generator else None

    def work(some: Sequence[Question]) -> dict[str, Any]:
        marks = [time.perf_counter()]
        sourced = retrieve(some, retriever, encoder, candidates)
        marks.append(time.perf_counter())
        texts = [question.text for question in some]
        scores = relevance(estimator, texts, [each.passages for each in sourced])
        marks.append(time.perf_counter())
        matrices: list[Matrix | None] = [None] * len(some)
        if reader is not None:
            wanted = [_kept_by_either(np.array(own), contexts) for own in scores]
            read = [[each.passages[i] for i in rows] for each, rows in zip(sourced, wanted, strict=True)]
            matrices[:] = reader.matrices(texts, read)
        marks.append(time.perf_counter())
        return {
            "seconds": dict(zip(STAGES, np.diff(marks).tolist(), strict=True)),
            "passages": [pack_passages(q, each.passages) for q, each in zip(some, sourced, strict=True)],
            "retriever": [each.scores_C.tolist() for each in sourced],
            "relevance": scores,
            "matrices": [pack_matrix(matrix) for matrix in matrices],
        }

    seconds = dict.fromkeys(STAGES, 0.0)
    pools: list[CandidateSet] = []
    batches = _batches(questions)
    results = (kept or ResumableBatches()).run(batches, work, "scoring and reading, batches")
    for some, result in zip(batches, results, strict=True):
        for stage, spent in result["seconds"].items():
            seconds[stage] += spent
        columns = (result[name] for name in ("passages", "retriever", "relevance", "matrices"))
        for question, packed, scores, logits, matrix in zip(some, *columns, strict=True):
            passages = unpack_passages(question, packed)
            pool = CandidateSet(
                question,
                passages,
                np.array(scores, float) / temperature,
                np.array(logits, float),
                holding(question, passages),
                matrix=unpack_matrix(matrix),
                relevance_temperature=model.relevance_temperature,
            )
            if pool.matrix is not None:
                rows = _kept_by_either(pool.relevance_C, contexts)
                pool.places = {candidate: place for place, candidate in enumerate(rows)}
            pools.append(pool)
    return pools, seconds


def training_scores(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    kept: ResumableBatches | None = None,
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.bool_]]]:
    """Retriever scores and has-answer labels of training questions, for `temperature.fit_temperature`.  `kept` as in
    `collect_candidates`."""

    def work(some: Sequence[Question]) -> list[tuple[list[float], list[bool]]]:
        sourced = retrieve(some, retriever, encoder, candidates)
        return [
            (each.scores_C.tolist(), holding(question, each.passages).tolist())
            for question, each in zip(some, sourced, strict=True)
            if each.passages
        ]

    pairs = itertools.chain.from_iterable(
        (kept or ResumableBatches()).run(_batches(questions), work, "temperature, batches")
    )
    found = [(np.array(scores, float), np.array(holds, bool)) for scores, holds in pairs]
    return [scores for scores, _ in found], [holds for _, holds in found]


def _best_first(relevance_C: NDArray[np.float64]) -> list[int]:
    return np.argsort(-relevance_C, kind="stable").tolist()


def _kept_by_either(relevance_C: NDArray[np.float64], contexts: int) -> list[int]:
    """The candidates among the first so many of the retriever's or of the estimator's order, ascending."""
    return sorted({*range(min(contexts, len(relevance_C))), *_best_first(relevance_C)[:contexts]})


def _batches(questions: Sequence[Question]) -> list[Sequence[Question]]:
    return [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]


def _unit(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)
