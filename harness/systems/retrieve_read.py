"""Retrieve-then-read (plain RAG): the retriever's first k passages, one reader call.

The baseline of every other system.

q -> d_1..d_k -> answer
"""

import time
from collections.abc import Sequence

from common.ranges import PositiveInt
from common.records import Answer, Asked, Question, clean
from common.retrieval import plain_search, search_for
from harness.interfaces import Reader, Retriever
from harness.readers.read_answers import read_answers
from harness.retrievers.question_passages import given_ranking
from harness.runtime.failures import answer_each
from harness.runtime.loading import load
from harness.runtime.memo import NEEDED, Memo
from harness.runtime.retriever_tree import failures_of


class RetrieveRead:
    """Retrieves k passages and generates an answer from them.  With a BM25 retriever it is the BM25 baseline.

    The evidence is in the retriever's order, with its scores.

    Args:
        retriever: Retrieves the evidence; None: the passages that each question ships, best first by the scores that
            their file gives, in file order where it does not give one for every passage.
        k: Number of passages.
        reader: Generates the answer; without a reader only the evidence is returned.
    """

    memo: Memo | None = None  # of an evaluation

    def __init__(self, retriever: Retriever | None = None, k: PositiveInt = 5, reader: Reader | None = None) -> None:
        self.retriever, self.k, self.reader = retriever, k, reader

    def load(self) -> None:
        """Load the reader and the retriever."""
        load(self.reader, self.retriever)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: one batched search, one reader call.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        return answer_each(self, self._answers, questions)

    def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        started = time.perf_counter()
        if self.retriever is not None:
            search = self.memo.searches("retrieval") if self.memo else plain_search
            found = search_for(self.retriever, questions, self.k, search=search)
        else:
            found = [given_ranking(question)[: self.k] for question in questions]
        costs = {
            "retriever_calls": float(self.retriever is not None),
            "model_calls": 0.0,
            "tokens": 0.0,
            "seconds/retrieval": (time.perf_counter() - started) / len(questions),
        }
        failed = failures_of(self.retriever)
        answers = []
        for question, hits in zip(questions, found, strict=True):
            why = failed.get(clean(question.text))
            notes: dict[str, object] = {"queries": [{"query": question.text, "found": [], "error": why}]} if why else {}
            if self.memo is not None and self.retriever is not None:
                searched = self.memo.searched("retrieval", self.retriever, 1, self.k)
                notes[NEEDED] = [searched, *self.memo.reading(self.reader, question)]
            own = {**costs, **({"failed_searches": 1.0} if why else {})}
            answers.append(self.shown(Answer(question.id, "", tuple(hits), costs=own, notes=notes)))
        return read_answers(self.reader, questions, answers, self.memo)

    def shown(self, answer: Answer) -> Answer:
        """An answer before it is read: its evidence is what the reader gets, here all of it."""
        return answer
