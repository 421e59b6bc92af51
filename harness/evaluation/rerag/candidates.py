"""RE-RAG's candidate sets, computed once per question.

Candidates with retriever and estimator scores, and the generator's answers per context. All weightings, subsets and
numbers of contexts in the tables are derived from them.

Shape legend: C candidates of a question, N contexts that were read, A distinct answers.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from common.records import Passage, Question
from harness.evaluation.rerag.retrieval import Source, batches_of, has_answer_labels, retrieve, source_of
from harness.evaluation.serialization import pack_passages, unpack_passages
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import PerContextReader, RelevanceModel, Retriever
from harness.readers.read_answers import costs_so_far, spent_since
from harness.retrievers.rerank import relevance
from harness.retrievers.rerank_prior import RerankPrior
from harness.runtime.resumable import ResumableBatches
from models.rerag.marginal_reader import AnswerMatrix, AnyMarginal, MarginalReading, weigh
from models.token_count import tokens_read

Ranker = Literal["retriever", "estimator"]
STAGES = ("retrieval", "scoring", "reading")


@dataclass(slots=True)
class CandidateSet:
    """One question's candidates, in the retriever's order."""

    question: Question
    passages: tuple[Passage, ...]
    retriever_C: NDArray[np.float64]  # retriever scores divided by the temperature
    relevance_C: NDArray[np.float64]  # the estimator's logits
    has_answer_C: NDArray[np.bool_]  # DPR's has-answer label
    column_of: dict[int, int] = field(default_factory=dict)  # candidate -> its column in the matrix
    matrix: AnswerMatrix | None = None
    relevance_temperature: float = 1.0  # divides the logits when `thorough` uses them as weights
    source: Source = "retriever"  # of the retriever scores
    retriever_temperature: float = 1.0  # that `retriever_C` was divided by
    tokens: dict[str, float] = field(default_factory=dict)  # read by the models per stage, mean of its batch
    reading_costs: dict[str, float] = field(default_factory=dict)  # further costs of reading, mean of its batch

    def order(self, by: Ranker) -> list[int]:
        """Candidates, best first; the retriever's order breaks ties."""
        if by == "retriever":
            return list(range(len(self.passages)))
        return _best_first(self.relevance_C)

    def weights(self, by: Ranker, marginal: AnyMarginal) -> NDArray[np.float64]:
        """Logits of the prior over contexts."""
        if by == "retriever":
            return self.retriever_C
        return self.relevance_C / (self.relevance_temperature if marginal == "thorough" else 1.0)

    def read(self, contexts: Ranker, weights: Ranker, count: int, marginal: AnyMarginal) -> MarginalReading:
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


def collect_candidates(
    questions: Sequence[Question],
    model: RelevanceModel,
    reader: PerContextReader | None,
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    contexts: int,
    temperatures: Mapping[Source, float] | None = None,
    saved: ResumableBatches | None = None,
    relevance_temperature: float = 1.0,
    prior: RerankPrior | None = None,
) -> tuple[list[CandidateSet], dict[str, float]]:
    """Score every candidate once; read every context that is among the first of either ranker once.

    Args:
        questions: All with answers.
        model: With an estimator.
        reader: Reads the contexts; None reads nothing.
        retriever: None for the questions' shipped passages.
        encoder: Ranks the shipped passages of questions without given scores; None if there are none.
        candidates: Number of passages to retrieve.
        contexts: Number of contexts read per ranker.
        temperatures: Divide the retriever scores, by their source; 1 for a source that is not in it.
        saved: Resumable batches for the results; must depend on everything but the temperatures.
        relevance_temperature: Divides the estimator's logits when `thorough` uses them as weights.
        prior: Makes the retriever's order count beside the logits.

    Returns:
        The candidate sets, and seconds per stage over all questions.
    """
    assert model.estimator is not None
    estimator = model.estimator

    def work(batch: Sequence[Question]) -> dict[str, Any]:
        times, tokens = [time.perf_counter()], [tokens_read(estimator, model.generator)]
        found = retrieve(batch, retriever, encoder, candidates)
        passages = [[hit.passage for hit in hits] for hits in found]
        times.append(time.perf_counter())
        texts = [question.text for question in batch]
        scores = relevance(estimator, texts, passages)
        if prior is not None:
            known = [source_of(question, retriever) != "cosine" for question in batch]  # a system has no other scores
            scores = [
                prior(own, [hit.score for hit in hits]) if has_scores else own
                for own, hits, has_scores in zip(scores, found, known, strict=True)
            ]
        times.append(time.perf_counter())
        tokens.append(tokens_read(estimator, model.generator))
        before = costs_so_far(reader)
        matrices: list[AnswerMatrix | None] = [None] * len(batch)
        if reader is not None:
            to_read = [_first_of_either(np.array(logits), contexts) for logits in scores]
            read = [[own[place] for place in rows] for own, rows in zip(passages, to_read, strict=True)]
            matrices[:] = reader.matrices(texts, read)
        times.append(time.perf_counter())
        tokens.append(tokens_read(estimator, model.generator))
        spent = spent_since(before, costs_so_far(reader))
        of_stages: dict[str, float] = dict(zip(STAGES[1:], np.diff(tokens).tolist(), strict=True))
        of_stages["reading"] += spent.pop("tokens", 0.0)
        return {
            "seconds": dict(zip(STAGES, np.diff(times).tolist(), strict=True)),
            "tokens": of_stages,
            "reading costs": spent,
            "passages": [pack_passages(question, own) for question, own in zip(batch, passages, strict=True)],
            "retriever": [[hit.score for hit in hits] for hits in found],
            "relevance": scores,
            "matrices": [pack_matrix(matrix) for matrix in matrices],
        }

    seconds = dict.fromkeys(STAGES, 0.0)
    candidate_sets: list[CandidateSet] = []
    batches = batches_of(questions)
    results = (saved or ResumableBatches()).run(batches, work, "scoring and reading, batches")
    for batch, result in zip(batches, results, strict=True):
        for stage, stage_seconds in result["seconds"].items():
            seconds[stage] += stage_seconds
        fields = (result[name] for name in ("passages", "retriever", "relevance", "matrices"))
        for question, packed, scores, logits, matrix in zip(batch, *fields, strict=True):
            passages = unpack_passages(question, packed)
            source = source_of(question, retriever)
            temperature = (temperatures or {}).get(source, 1.0)
            candidate_set = CandidateSet(
                question,
                passages,
                np.array(scores, float) / temperature,
                np.array(logits, float),
                has_answer_labels(question, passages),
                matrix=unpack_matrix(matrix),
                relevance_temperature=relevance_temperature,
                source=source,
                tokens={stage: count / len(batch) for stage, count in result["tokens"].items()},
                reading_costs={name: value / len(batch) for name, value in result["reading costs"].items()},
                retriever_temperature=temperature,
            )
            if candidate_set.matrix is not None:
                rows = _first_of_either(candidate_set.relevance_C, contexts)
                candidate_set.column_of = {candidate: column for column, candidate in enumerate(rows)}
            candidate_sets.append(candidate_set)
    return candidate_sets, seconds


def _best_first(relevance_C: NDArray[np.float64]) -> list[int]:
    return np.argsort(-relevance_C, kind="stable").tolist()


def _first_of_either(relevance_C: NDArray[np.float64], contexts: int) -> list[int]:
    """The first `contexts` candidates of the retriever's and of the estimator's order together, ascending."""
    return sorted({*range(min(contexts, len(relevance_C))), *_best_first(relevance_C)[:contexts]})


def pack_matrix(matrix: AnswerMatrix | None) -> dict[str, Any] | None:
    """The matrix as JSON types, its (A, N) log-probabilities row by row."""
    if matrix is None:
        return None
    logp_AN = matrix.answer_logp_AN
    return {
        "written": list(matrix.written),
        "candidates": list(matrix.candidates),
        # JSON has no infinity: null is -inf
        "answer_logp": None
        if logp_AN is None
        else [[None if v == -inf else v for v in row] for row in logp_AN.tolist()],
        **({"failed": list(matrix.failed)} if matrix.failed else {}),
    }


def unpack_matrix(packed: dict[str, Any] | None) -> AnswerMatrix | None:
    """The inverse of `pack_matrix`, log-probabilities as float32."""
    if packed is None:
        return None
    written, candidates = tuple(packed["written"]), tuple(packed["candidates"])
    failed = tuple(packed.get("failed", ()))
    if packed["answer_logp"] is None:
        return AnswerMatrix(written, candidates, None, failed)
    rows = [[-inf if value is None else value for value in row] for row in packed["answer_logp"]]
    logp_AN = torch.tensor(rows, dtype=torch.float32).reshape(
        len(candidates), len(written)
    )  # an empty list has no shape
    return AnswerMatrix(written, candidates, logp_AN, failed)
