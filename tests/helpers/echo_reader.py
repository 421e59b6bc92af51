"""Readers without a model: one that answers with the titles it was shown, and two with a word of a passage."""

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
        texts = [" ".join(hit.passage.title for hit in hits) for hits in evidence]
        pairs = zip(questions, texts, strict=True)
        return [Answer(q.id, text, (), -1.0, dict(costs), {"read": True}) for q, text in pairs]


class FirstPassage:
    """Answers with the last word of the first passage."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        texts = [hits[0].passage.text.rstrip(" .").split()[-1] if hits else "" for hits in evidence]
        return [Answer(each.id, text, (), -0.5) for each, text in zip(questions, texts, strict=True)]


class LastPassage(FirstPassage):
    """Answers with the last word of the last passage."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        return super().read(questions, [hits[::-1] for hits in evidence])
