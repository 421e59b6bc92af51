"""The rows of HiQA's study as answering systems: what one reader answers from the passages of each row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from common.records import Answer, Question
from harness.evaluation.reading import read_choices
from harness.interfaces import Retriever
from harness.readers.read_answers import sum_costs
from harness.strategies.hiqa import HiQa


def answer_rows(
    strategy: HiQa, retrievers: Mapping[str, Retriever], questions: Sequence[Question], file: Path
) -> tuple[dict[str, list[Answer]], float]:
    """The answers of every row, with the evidence that the system would keep of it.

    Without texts if the system has no reader.

    Args:
        strategy: Its number of passages, budget and reader count for all rows.
        retrievers: Of the rows, by name.
        questions: The questions; those without gold answers are not read.
        file: For what was read, so that an interrupted evaluation goes on.

    Returns:
        One answer per question by row, and the seconds of reading that an interrupted run had spent.
    """
    found = {
        name: HiQa(each, strategy.k, strategy.most_words).answer(list(questions)) for name, each in retrievers.items()
    }
    if strategy.reader is None:
        return found, 0.0
    chosen = [[answer.evidence for answer in answers] for answers in found.values()]
    read = read_choices(strategy.reader, questions, chosen, file, [*found])
    return {
        name: [
            replace(
                text,
                evidence=answer.evidence,
                costs={**sum_costs(answer.costs, text.costs), "seconds/reading": read.seconds_each},
                notes={**answer.notes, **text.notes},
            )
            for answer, text in zip(answers, texts, strict=True)
        ]
        for (name, answers), texts in zip(found.items(), read.answers, strict=True)
    }, read.seconds_before
