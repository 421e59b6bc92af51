"""The rows of MSRAG's study: systems that are choices among the same answers of the same sources.

Every row is what a system that is configured like it answers, with the costs of the sources that it asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.records import Answer, Question
from common.sources import GENERATED, NONE, WEB, Chosen
from harness.interfaces import AnswerSelector
from harness.strategies.msrag import chosen_answer

NO_RAG, SR_RAG, GPT_RETRIEVAL, WEB_ALONE = "No-RAG", "SR-RAG", "GPT-Retrieval", "web alone"
SINGLE = {NONE: NO_RAG, GENERATED: GPT_RETRIEVAL, WEB: WEB_ALONE}  # the source alone is this row
WITHOUT = {GENERATED: "w/o GPT", WEB: "w/o Web", NONE: "w/o no-retrieval"}
UNSEGMENTED = "no segmentation"
BySource = Mapping[str, Answer]


@dataclass(slots=True)
class Row:
    """One system of the study."""

    answers: list[Answer]
    chosen: list[Chosen] | None = None  # None for a single source
    uses_gold: bool = False


def single_rows(answers: Sequence[BySource]) -> dict[str, Row]:
    """Every source alone."""
    return {SINGLE[source]: Row([each[source] for each in answers]) for source in answers[0]}


def chosen_row(questions: Sequence[Question], answers: Sequence[BySource], selector: AnswerSelector) -> Row:
    """The answers that a selector chooses."""
    return row_of(questions, answers, selector.choose(questions, answers), selector)


def row_of(
    questions: Sequence[Question], answers: Sequence[BySource], chosen: Sequence[Chosen], selector: AnswerSelector
) -> Row:
    """The answers of given choices."""
    given = [chosen_answer(*each, selector) for each in zip(questions, answers, chosen, strict=True)]
    return Row(given, list(chosen), selector.uses_gold)


def without(answers: Sequence[BySource], source: str) -> list[dict[str, Answer]]:
    """The answers of all sources but one."""
    return [{name: answer for name, answer in each.items() if name != source} for each in answers]


def replaced(answers: Sequence[BySource], source: str, others: Sequence[Answer]) -> list[dict[str, Answer]]:
    """The answers with those of one source replaced."""
    return [{**each, source: other} for each, other in zip(answers, others, strict=True)]
