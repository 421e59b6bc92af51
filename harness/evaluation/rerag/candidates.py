"""RE-RAG's candidate sets, computed once per question: candidates with retriever and estimator scores, and the generator's
answers per context.  All weightings, subsets and numbers of contexts in the tables are derived from them.

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
QUESTIONS_AT_ONCE = 32  # bounds the memory of tokens and encoder states


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One question's candidates in the retriever's order, best first."""

    passages: tuple[Passage, ...]
    scores_C: NDArray[np.float64]


@dataclass(slots=True)
class CandidateSet:
    """One question's candidates, in the retriever's order."""

    question: Question
    passages: tuple[Passage, ...]
    retriever_C: NDArray[np.float64]  # retriever scores divided by the temperature
    relevance_C: NDArray[np.float64]  # the estimator's logits
    has_answer_C: NDArray[np.bool_]  # DPR's has-answer label
    column_of: dict[int, int] = field(default_factory=dict)  # candidate -> its column in the matrix
    matrix: Matrix | None = None
    relevance_temperature: float = 1.0  # divides the logits when `thorough` uses them as weights

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
        """The answer from the first `count` contexts of the ranker `contexts`, weighted by the ranker `weights`.

        Raises:
            KeyError: If a context was not read.
        """
        chosen = self.order(contexts)[:count]
        assert self.matrix is not None
        matrix = self.matrix.subset([self.column_of[candidate] for candidate in chosen])
        if marginal == "fast":
            matrix = replace(matrix, answer_logp_AN=None)
        return weigh(matrix, torch.tensor(self.weights(weights, marginal)[chosen], dtype=torch.float32))


def retrieve(
    questions: Sequence[Question], retriever: Retriever | None, encoder: SentenceEncoder | None, candidates: int
) -> list[Retrieved]:
    """Every question's candidates: the retriever's best, or its shipped passages, ranked by the encoder's cosine.

    Raises:
        UserError: If there is no retriever and a question ships no passages.
    """
    if retriever is not None:
        found = retriever.search([question.text for question in questions], candidates)
        return [Retrieved(tuple(h.passage for h in hits), np.array([h.score for h in hits], float)) for hits in found]
    assert encoder is not None
    for question in questions:
        if not question.passages:
            raise UserError(
                f"question {question.id!r} comes without passages and the strategy has no retriever: "
                "configure --strategy.init_args.retriever, or choose a file that ships passages."
            )
    texts = {passage.id: indexed_text(passage) for question in questions for passage in question.passages}
    row_of = {id_: row for row, id_ in enumerate(texts)}
    passages_PD = _unit(encoder.encode_passages(list(texts.values())))
    queries_QD = _unit(encoder.encode_queries([question.text for question in questions]))
    retrieved = []
    for question, query_D in zip(questions, queries_QD, strict=True):
        cosine_C = passages_PD[[row_of[passage.id] for passage in question.passages]] @ query_D
        order = np.argsort(-cosine_C, kind="stable")
        retrieved.append(Retrieved(tuple(question.passages[i] for i in order), cosine_C[order].astype(float)))
    return retrieved


def has_answer_labels(question: Question, passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """DPR's has-answer label of every passage: whether it contains one of the question's answers."""
    return np.array([has_answer(passage.text, question.answers) for passage in passages], dtype=bool)


def collect_candidates(
    questions: Sequence[Question],
    model: RelevanceModel,
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    contexts: int,
    temperature: float = 1.0,
    saved: ResumableBatches | None = None,
) -> tuple[list[CandidateSet], dict[str, float]]:
    """Score every candidate once; read every context that is among the first of either ranker once.

    Args:
        questions: All with answers.
        model: With an estimator; without a generator nothing is read.
        retriever: None for the questions' shipped passages.
        encoder: Ranks the shipped passages; None with a retriever.
        candidates: Number of passages to retrieve.
        contexts: Number of contexts read per ranker.
        temperature: Divides the retriever's scores.
        saved: Resumable batches for the results; must depend on everything but the temperature.

    Returns:
        The candidate sets, and seconds per stage over all questions.
    """
    assert model.estimator is not None
    estimator = model.estimator
    reader = MarginalReader(model.generator, "thorough", model.max_answer_tokens) if model.generator else None

    def work(batch: Sequence[Question]) -> dict[str, Any]:
        times = [time.perf_counter()]
        retrieved = retrieve(batch, retriever, encoder, candidates)
        times.append(time.perf_counter())
        texts = [question.text for question in batch]
        scores = relevance(estimator, texts, [each.passages for each in retrieved])
        times.append(time.perf_counter())
        matrices: list[Matrix | None] = [None] * len(batch)
        if reader is not None:
            to_read = [_first_of_either(np.array(logits), contexts) for logits in scores]
            read = [[each.passages[i] for i in rows] for each, rows in zip(retrieved, to_read, strict=True)]
            matrices[:] = reader.matrices(texts, read)
        times.append(time.perf_counter())
        return {
            "seconds": dict(zip(STAGES, np.diff(times).tolist(), strict=True)),
            "passages": [pack_passages(q, each.passages) for q, each in zip(batch, retrieved, strict=True)],
            "retriever": [each.scores_C.tolist() for each in retrieved],
            "relevance": scores,
            "matrices": [pack_matrix(matrix) for matrix in matrices],
        }

    seconds = dict.fromkeys(STAGES, 0.0)
    candidate_sets: list[CandidateSet] = []
    batches = _batches(questions)
    results = (saved or ResumableBatches()).run(batches, work, "scoring and reading, batches")
    for batch, result in zip(batches, results, strict=True):
        for stage, stage_seconds in result["seconds"].items():
            seconds[stage] += stage_seconds
        fields = (result[name] for name in ("passages", "retriever", "relevance", "matrices"))
        for question, packed, scores, logits, matrix in zip(batch, *fields, strict=True):
            passages = unpack_passages(question, packed)
            candidate_set = CandidateSet(
                question,
                passages,
                np.array(scores, float) / temperature,
                np.array(logits, float),
                has_answer_labels(question, passages),
                matrix=unpack_matrix(matrix),
                relevance_temperature=model.relevance_temperature,
            )
            if candidate_set.matrix is not None:
                rows = _first_of_either(candidate_set.relevance_C, contexts)
                candidate_set.column_of = {candidate: column for column, candidate in enumerate(rows)}
            candidate_sets.append(candidate_set)
    return candidate_sets, seconds


def training_scores(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    saved: ResumableBatches | None = None,
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.bool_]]]:
    """Retriever scores and has-answer labels of training questions, for `temperature.fit_temperature`.  `saved` as in
    `collect_candidates`."""

    def work(batch: Sequence[Question]) -> list[tuple[list[float], list[bool]]]:
        retrieved = retrieve(batch, retriever, encoder, candidates)
        return [
            (each.scores_C.tolist(), has_answer_labels(question, each.passages).tolist())
            for question, each in zip(batch, retrieved, strict=True)
            if each.passages
        ]

    pairs = itertools.chain.from_iterable(
        (saved or ResumableBatches()).run(_batches(questions), work, "temperature, batches")
    )
    arrays = [(np.array(scores, float), np.array(labels, bool)) for scores, labels in pairs]
    return [scores for scores, _ in arrays], [labels for _, labels in arrays]


def _best_first(relevance_C: NDArray[np.float64]) -> list[int]:
    return np.argsort(-relevance_C, kind="stable").tolist()


def _first_of_either(relevance_C: NDArray[np.float64], contexts: int) -> list[int]:
    """The first `contexts` candidates of the retriever's and of the estimator's order together, ascending."""
    return sorted({*range(min(contexts, len(relevance_C))), *_best_first(relevance_C)[:contexts]})


def _batches(questions: Sequence[Question]) -> list[Sequence[Question]]:
    return [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]


def _unit(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)
