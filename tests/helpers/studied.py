"""A study's answers and findings together, as the engine asks for them, how its tables are read, and a reader."""

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from common.records import Answer, Question, Ranked
from harness.evaluation.engine import measure
from harness.evaluation.settings import Settings
from harness.evaluation.tables import ReportTable
from harness.runtime.memo import FOR_STUDY


def studied(study: Any, system: Any, questions: Sequence[Question], settings: Settings) -> Any:
    """The system's answers, and all fields of what was found."""
    measured = measure(system, questions, study, settings)
    found = {field.name: getattr(measured.findings, field.name) for field in fields(measured.findings)}
    return SimpleNamespace(answers=measured.answers, **found)


def rows_of(tables: Sequence[ReportTable], name: str) -> dict[str, list[float | None]]:
    """The values of a table by row, None in an empty cell."""
    (found,) = (table for table in tables if table.name == name)
    return {row: [None if cell is None else cell.value for cell in cells] for row, cells in found.rows.items()}


def counted(answer: Answer) -> tuple[Any, ...]:
    """An answer without times, without tokens, which are shared out among rows, and without what a study adds."""
    costs = {name: cost for name, cost in answer.costs.items() if name != "tokens" and "seconds" not in name}
    notes = {name: note for name, note in answer.notes.items() if name != FOR_STUDY}
    return answer.question_id, answer.text, answer.evidence, answer.logprob, costs, notes


class Titles:
    """A reader that answers with the titles it is shown, one model call per passage; it keeps what it has read."""

    def __init__(self) -> None:
        self.read_sets: list[tuple[str, str]] = []

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question."""
        texts = [", ".join(hit.passage.title for hit in hits) for hits in evidence]
        self.read_sets += [(question.id, text) for question, text in zip(questions, texts, strict=True)]
        rows = zip(questions, texts, evidence, strict=True)
        return [Answer(q.id, text, (), -0.5, {"model_calls": float(len(hits))}) for q, text, hits in rows]
