"""Reading each context alone, once for all rows of an evaluation (`harness.runtime.memo`)."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from common.records import Passage, Question
from harness.interfaces import PerContextReader
from harness.readers.read_answers import costs_so_far, spent_since
from harness.runtime.memo import Values, digest_of, key_of_texts

if TYPE_CHECKING:
    from models.rerag.marginal_reader import AnswerMatrix

QUESTIONS_AT_ONCE = 32  # bounds the memory of encoder states; an interruption loses one batch


@dataclass(frozen=True, slots=True)
class ReadContexts:
    """What was read of a question."""

    matrix: "AnswerMatrix"  # of the contexts that were asked for
    share: float  # of one context in the value
    spent: Mapping[str, float]  # costs of one context


def read_once(
    values: Values, reader: PerContextReader, questions: Sequence[Question], contexts: Sequence[Sequence[Passage]]
) -> list[ReadContexts]:
    """What a reader makes of the contexts of each question, at least one; known contexts are not read again.

    A matrix of which a call failed is made again by the next run.
    """
    ids = [[key_of_texts(passage.title, passage.text) for passage in own] for own in contexts]

    def work(places: Sequence[int]) -> list[dict[str, Any]]:
        before = costs_so_far(reader)
        matrices = reader.matrices([questions[place].text for place in places], [contexts[place] for place in places])
        spent = spent_since(before, costs_so_far(reader))
        shared = {name: value / len(places) for name, value in spent.items()}
        return [packed(ids[place], matrix) | {"spent": shared} for place, matrix in zip(places, matrices, strict=True)]

    def key_of(place: int) -> str:
        key = digest_of(questions[place])
        lacks = key in values and {*ids[place]} - {*values([key], work, None, 1)[0]["contexts"]}
        return digest_of(questions[place], ids[place]) if lacks else key

    keys = [*map(key_of, range(len(questions)))]
    found = values(keys, work, None, QUESTIONS_AT_ONCE, lasts=lambda value: not value["failed"])
    return [_of_these(*pair) for pair in zip(found, ids, strict=True)]


def _of_these(value: Mapping[str, Any], ids: Sequence[str]) -> ReadContexts:
    columns = {id_: column for column, id_ in enumerate(value["contexts"])}
    matrix = unpacked(value).subset([columns[id_] for id_ in ids])
    return ReadContexts(matrix, 1 / len(columns), {name: cost / len(columns) for name, cost in value["spent"].items()})


def packed(ids: Sequence[str], matrix: "AnswerMatrix") -> dict[str, Any]:
    """The matrix of contexts as JSON types; log-probabilities as the bytes of float32."""
    logp_AN = matrix.answer_logp_AN
    texts = {"contexts": list(ids), "written": list(matrix.written), "failed": list(matrix.failed)}
    return {**texts, "answer_logp": None if logp_AN is None else b64encode(logp_AN.numpy().tobytes()).decode()}


def unpacked(value: Mapping[str, Any]) -> "AnswerMatrix":
    """The inverse of `packed`."""
    import numpy as np
    import torch

    from models.rerag.marginal_reader import AnswerMatrix

    written, failed = tuple(value["written"]), tuple(value["failed"])
    matrix = AnswerMatrix.of(written, None, failed)
    if value["answer_logp"] is None:
        return matrix
    logp = torch.from_numpy(np.frombuffer(b64decode(value["answer_logp"]), np.float32).copy())
    return replace(matrix, answer_logp_AN=logp.reshape(len(matrix.candidates), len(written)))
