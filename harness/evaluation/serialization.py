"""Lossless JSON serialization of candidates, matrices of answer scores, and answers, for resumable batches.

A question's shipped passages are stored by position, others in full. Floats are stored exactly: Python writes the
shortest decimal that reads back equal, and a float32 is exact as a float64. Shape legend: N contexts, A answers.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from math import inf
from typing import TYPE_CHECKING, Any

from common.records import Answer, Passage, Question, Ranked

if TYPE_CHECKING:
    from models.rerag.marginal_reader import Matrix


def digest(questions: Iterable[Question]) -> str:
    """sha256 over all fields of the questions, in order."""
    hashed = sha256()
    for question in questions:
        hashed.update(repr(question).encode(errors="surrogatepass"))
        for later in (question.history, question.gold_corpus_ids):
            if later:  # not in `repr`, so that results that were kept before there were these fields stay valid
                hashed.update(repr(later).encode(errors="surrogatepass"))
    return hashed.hexdigest()


def pack_passages(question: Question, passages: Iterable[Passage]) -> list[Any]:
    """Each passage as its position in the question's shipped passages, or as the list of its fields."""
    places = {passage: place for place, passage in enumerate(question.passages)}
    packed: list[Any] = []
    for p in passages:
        place = places.get(p)
        # an index has the corpus's own ids and metadata, the question's file often has not
        same = place is not None and question.passages[place].labels == p.labels
        fields = [p.id, p.text, p.title, p.source, p.corpus_id, p.metadata]
        packed.append(place if same else [*fields, *([p.indexed] if p.indexed else [])])
    return packed


def unpack_passages(question: Question, packed: Sequence[Any]) -> tuple[Passage, ...]:
    """The inverse of `pack_passages`."""
    return tuple(question.passages[each] if isinstance(each, int) else Passage(*each) for each in packed)


def pack_matrix(matrix: "Matrix | None") -> dict[str, Any] | None:
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


def unpack_matrix(packed: dict[str, Any] | None) -> "Matrix | None":
    """The inverse of `pack_matrix`, log-probabilities as float32."""
    if packed is None:
        return None
    import torch

    from models.rerag.marginal_reader import Matrix

    written, candidates = tuple(packed["written"]), tuple(packed["candidates"])
    failed = tuple(packed.get("failed", ()))
    if packed["answer_logp"] is None:
        return Matrix(written, candidates, None, failed)
    rows = [[-inf if value is None else value for value in row] for row in packed["answer_logp"]]
    logp_AN = torch.tensor(rows, dtype=torch.float32).reshape(
        len(candidates), len(written)
    )  # an empty list has no shape
    return Matrix(written, candidates, logp_AN, failed)


def pack_answer(question: Question, answer: Answer) -> dict[str, Any]:
    """The answer to a question as JSON types."""
    return {
        "text": answer.text,
        "passages": pack_passages(question, (hit.passage for hit in answer.evidence)),
        "scores": [hit.score for hit in answer.evidence],
        "logprob": answer.logprob,
        "costs": answer.costs,
        "notes": answer.notes,
    }


def unpack_answer(question: Question, packed: dict[str, Any]) -> Answer:
    """The inverse of `pack_answer`."""
    passages = unpack_passages(question, packed["passages"])
    evidence = tuple(map(Ranked, passages, packed["scores"]))
    return Answer(question.id, packed["text"], evidence, packed["logprob"], packed["costs"], packed["notes"])
