"""Retrieval with title expansion: each question is searched again together with the title of its best passage.

q -> d_1..d_k -> q' = q + title(d_1) -> d'_1..d'_k -> k passages, from both lists in turn -> answer
"""

import time
from itertools import zip_longest

from common.checks import check_at_least
from common.records import Answer, Asked, as_questions
from harness.interfaces import Reader, Retriever
from harness.readers.read_answers import read_answers


class TitleExpansion:
    """Two searches per question.

    Args:
        retriever: Finds the passages.
        k: Number of passages.
        reader: Generates the answer; without a reader only the passages are returned.

    Raises:
        UserError: If k is below 1.
    """

    def __init__(self, retriever: Retriever, k: int = 4, reader: Reader | None = None) -> None:
        self.check_options(k)
        self.retriever, self.k, self.reader = retriever, k, reader

    @staticmethod
    def check_options(k: int) -> None:
        """Raise UserError if a value is out of range; called before anything is loaded."""
        check_at_least(1, k=k)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: two batched searches, one reader call."""
        questions = as_questions(questions)
        if not questions:
            return []
        started = time.perf_counter()
        first = self.retriever.search([each.text for each in questions], self.k)
        titles = [hits[0].passage.title if hits else "" for hits in first]
        queries = [f"{each.text} {title}" for each, title in zip(questions, titles, strict=True)]
        second = self.retriever.search(queries, self.k)
        seconds = (time.perf_counter() - started) / len(questions)
        answers = []
        for question, *lists in zip(questions, first, second, strict=True):
            found = {}  # passage id -> its hit, its stage, and its rank there
            for rank, hits in enumerate(zip_longest(*lists), start=1):
                for stage, hit in zip(("first", "second"), hits, strict=True):
                    if hit is not None:
                        found.setdefault(hit.passage.id, (hit, stage, rank))
            chosen = list(found.values())[: self.k]
            costs = {"retriever_calls": 2.0, "model_calls": 0.0, "seconds/retrieval": seconds}
            notes = [{"id": hit.passage.id, "stage": stage, "rank": rank} for hit, stage, rank in chosen]
            answers.append(
                Answer(question.id, "", tuple(hit for hit, *_ in chosen), costs=costs, notes={"found": notes})
            )
        return read_answers(self.reader, questions, answers)
