"""Reading as the last step of a system: answers that hold evidence get the reader's text, costs and notes."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from common.records import Answer, Question
from harness.interfaces import Reader
from harness.runtime.memo import Memo
from harness.runtime.stages import stage_ended


def read_answers(
    reader: Reader | None, questions: Sequence[Question], answers: Sequence[Answer], memo: Memo | None = None
) -> list[Answer]:
    """The answers with the reader's text, log-probability, costs and notes added; as they are without a reader.

    The evidence stays in the system's order. Costs of one name are summed; `seconds/reading` is the time of the call
    divided by the number of questions.
    """
    if reader is None or not questions:
        return list(answers)
    stage_ended("evidence", answers)
    started = time.perf_counter()
    read = partial(memo.read, reader) if memo else reader.read
    texts = read(questions, [answer.evidence for answer in answers])
    seconds = (time.perf_counter() - started) / len(questions)
    return [
        replace(
            text,
            evidence=answer.evidence,
            costs={**sum_costs(answer.costs, text.costs), "seconds/reading": seconds},
            notes={**answer.notes, **text.notes},
        )
        for answer, text in zip(answers, texts, strict=True)
    ]


def sum_costs(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Sum of the costs of two steps, by name."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in [*one, *(n for n in other if n not in one)]}


def costs_so_far(reader: object) -> dict[str, float]:
    """The costs of all calls of a reader so far, without the number of calls, which systems count themselves.

    Empty for a reader that counts none.
    """
    spent: dict[str, float] = getattr(reader, "spent", {})
    return {name: value for name, value in spent.items() if name != "model_calls"}


def spent_since(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """The difference of two sums of costs, by name."""
    return {name: value - before.get(name, 0.0) for name, value in now.items()}
