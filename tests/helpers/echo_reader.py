"""A reader that answers with the titles it was shown."""

from collections.abc import Sequence

from common.records import Answer, Question, Ranked


class EchoReader:
    """Has costs and notes, and keeps the questions that it was given last."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question."""
        self.questions = list(questions)
        costs = {"model_calls": 1.0, "tokens": 5.0}
        return [
            Answer(q.id, " ".join(hit.passage.title for hit in hits), (), -1.0, dict(costs), {"read": True})
            for q, hits in zip(questions, evidence, strict=True)
        ]
