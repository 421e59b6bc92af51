"""Retrieval with title expansion: each question is searched again together with the title of one of its passages.

q -> d_1..d_k -> q' = q + title(d) -> d'_1..d'_k -> k passages, from both lists in turn -> answer
"""

import time
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from common.ranges import PositiveInt
from common.records import Answer, Asked, Ranked, as_questions
from common.retrieval import search_for
from harness.interfaces import Reader, Retriever
from harness.readers.read_answers import read_answers
from harness.runtime.loading import load

if TYPE_CHECKING:
    from expansion.model import TitleModel


class TitleExpansion:
    """Two searches per question.

    Args:
        retriever: Finds the passages.
        k: Number of passages.
        reader: Generates the answer; without a reader only the passages are returned.
        serving: Folder of the trained model that chooses the passage whose title is added; the first one when omitted.
    """

    study = "expansion.study:Study"

    def __init__(
        self, retriever: Retriever, k: PositiveInt = 4, reader: Reader | None = None, serving: Path | None = None
    ) -> None:
        self.retriever, self.k, self.reader, self.serving = retriever, k, reader, serving

    def load(self) -> None:
        """Load the model, the index and the reader."""
        _ = self.model
        load(self.retriever, self.reader)

    @cached_property
    def model(self) -> "TitleModel | None":
        """Chooses the title."""
        if self.serving is None:
            return None
        from expansion.model import TitleModel

        return TitleModel.load(self.serving)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: two batched searches, one reader call."""
        questions = as_questions(questions)
        if not questions:
            return []
        started = time.perf_counter()
        first = search_for(self.retriever, questions, self.k)
        titles = [self._title(each.text, hits) for each, hits in zip(questions, first, strict=True)]
        queries = [f"{each.text} {title}" for each, title in zip(questions, titles, strict=True)]
        second = search_for(self.retriever, questions, self.k, queries)
        seconds = (time.perf_counter() - started) / len(questions)
        answers = []
        for question, *lists in zip(questions, first, second, strict=True):
            found = {}  # passage id -> its hit, its stage, and its rank there
            for rank, hits in enumerate(zip_longest(*lists), start=1):
                for stage, hit in zip(("first", "second"), hits, strict=True):
                    if hit is not None:
                        found.setdefault(hit.passage.id, (hit, stage, rank))
            chosen = list(found.values())[: self.k]
            costs = {"retriever_calls": 2.0, "model_calls": float(self.model is not None), "seconds/retrieval": seconds}
            notes = [{"id": hit.passage.id, "stage": stage, "rank": rank} for hit, stage, rank in chosen]
            answers.append(
                Answer(question.id, "", tuple(hit for hit, *_ in chosen), costs=costs, notes={"found": notes})
            )
        return read_answers(self.reader, questions, answers)

    def _title(self, question: str, hits: list[Ranked]) -> str:
        """The title that is added."""
        passages = [hit.passage for hit in hits]
        if self.model is not None and passages:
            return self.model.best(question, passages).title
        return passages[0].title if passages else ""
