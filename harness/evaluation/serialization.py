"""Lossless JSON serialization of passages and answers, for resumable batches.

A question's shipped passages are stored by position, others in full. Floats are stored exactly: Python writes the
shortest decimal that reads back equal, and a float32 is exact as a float64.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from common.records import Answer, Passage, Question, Ranked


def digest(questions: Iterable[Question]) -> str:
    """sha256 over all fields of the questions, in order."""
    hashed = sha256()
    for question in questions:
        hashed.update(repr(question).encode(errors="surrogatepass"))
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
        later = [p.indexed, p.other_ids] if p.other_ids else [p.indexed] if p.indexed else []
        packed.append(place if same else [*fields, *later])
    return packed


def unpack_passages(question: Question, packed: Sequence[Any]) -> tuple[Passage, ...]:
    """The inverse of `pack_passages`."""
    return tuple(
        question.passages[each] if isinstance(each, int) else Passage(*each[:7], *map(tuple, each[7:]))
        for each in packed
    )


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
