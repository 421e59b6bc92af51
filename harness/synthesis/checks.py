"""Checks of drafted questions: rules on question and passages, and the round trip through a reader."""

import re
from collections.abc import Sequence

from common.answer_metrics import has_answer, squad, usual_scores
from common.records import Passage, Question, Ranked
from harness.interfaces import Reader
from harness.synthesis.drafts import Draft, DraftTask

_MAX_WORDS = 50  # of a question
REASONS = {  # why a draft is dropped, in the order of the checks
    "failed": "the writer or the reader gave no reply",
    "unparsable": "no reply is the JSON object asked for",
    "empty": "question or answer is empty",
    "too_long": "the question has more than 50 words",
    "repeats_itself": "the question says the same four words twice",
    "answer_not_in_passage": "the answer does not stand in the last passage",
    "answer_in_first_passage": "the answer stands in the first of two passages too",
    "answer_in_question": "the question contains its answer",
    "names_second_passage": "the question names the second passage, so the first is not needed",
    "duplicate": "the question was written before",
    "wrong_answer": "the reader answers something else from the passages",
    "one_passage_is_enough": "the reader gives the answer from one of two passages alone",
    "not_found": "the retriever does not find a passage of the question",
}


def fault(task: DraftTask, draft: Draft) -> str:
    """Why a draft is dropped before anything reads it; empty if it is kept."""
    if draft.failure:
        return draft.failure
    if not squad(draft.question) or not squad(draft.answer):
        return "empty"
    if len(draft.question.split()) > _MAX_WORDS:
        return "too_long"
    if repeats_itself(draft.question):
        return "repeats_itself"
    *first, last = task.passages
    if not has_answer(last.text, [draft.answer]):
        return "answer_not_in_passage"
    if any(has_answer(f"{passage.title} . {passage.text}", [draft.answer]) for passage in first):
        return "answer_in_first_passage"
    if has_answer(draft.question, [draft.answer]):
        return "answer_in_question"
    if first and has_answer(draft.question, [last.title, re.sub(r"\s*\([^()]*\)$", "", last.title)]):
        return "names_second_passage"
    return ""


def repeats_itself(question: str, words: int = 4) -> bool:
    """Whether a sequence of `words` words occurs twice, as in the output of a small generator that has lost its way."""
    said = squad(question).split()
    parts = [tuple(said[place : place + words]) for place in range(len(said) - words + 1)]
    return len(set(parts)) < len(parts)


class RoundTrip:
    """Answers drafted questions again.

    Args:
        reader: Reads the passages.
        min_f1: The token F1 with the drafted answer from which an answer counts as the same; None: exact match.
        alone: Whether a question about two passages is dropped if one of them alone gives the answer.
    """

    def __init__(self, reader: Reader, min_f1: float | None = None, alone: bool = True) -> None:
        self.reader, self.min_f1, self.alone = reader, min_f1, alone
        self.costs: list[dict[str, float]] = []  # of the answers since it was emptied
        self.errors: dict[str, str] = {}  # why there was no reply, by question

    def faults(self, tasks: Sequence[DraftTask], drafts: Sequence[Draft]) -> list[str]:
        """Why each draft is dropped; empty where it is kept."""
        found = self._read(drafts, [task.passages for task in tasks])
        rows = [
            (row, passage)
            for row, task in enumerate(tasks)
            if self.alone and not found[row] and len(task.passages) > 1
            for passage in task.passages
        ]
        alone = self._read([drafts[row] for row, _ in rows], [(passage,) for _, passage in rows])
        for (row, _), reason in zip(rows, alone, strict=True):
            if reason == "failed" and not found[row]:
                found[row] = "failed"
            elif not reason:
                found[row] = "one_passage_is_enough"
        return found

    def _read(self, drafts: Sequence[Draft], passages: Sequence[Sequence[Passage]]) -> list[str]:
        """Empty where the reader gives the drafted answer from the passages; else `wrong_answer`, or `failed`.

        It is `failed` without a reply.
        """
        if not drafts:
            return []
        questions = [Question(str(number), draft.question) for number, draft in enumerate(drafts)]
        answers = self.reader.read(questions, [[Ranked(passage, 1.0) for passage in each] for each in passages])
        self.costs += [answer.costs for answer in answers]
        errors = {
            d.question: str(a.notes["error"]) for d, a in zip(drafts, answers, strict=True) if a.notes.get("error")
        }
        self.errors |= errors
        return [
            "failed" if draft.question in errors else "" if self._agrees(answer.text, draft.answer) else "wrong_answer"
            for answer, draft in zip(answers, drafts, strict=True)
        ]

    def _agrees(self, text: str, answer: str) -> bool:
        match, f1 = usual_scores(text, [answer])
        return match == 1.0 if self.min_f1 is None else f1 >= self.min_f1
