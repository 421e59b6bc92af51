"""DMQR-RAG at inference: rewrite the question, search with it and its rewrites, rerank the union, read the best.

q -> q' = {q, RS_1(q), ..., RS_n(q)} -> D = Retriever(q') -> D' = Reranker(q, D) -> LLM(q, TopK(D'))  (Eq. 1-3)

Its baselines (Table 2) are options: without a rewriter it is retrieval with the original query (OQR), with `original`
false a rewrite replaces the question (LLM Rewrite, HyDE), with `fusion` rrf and similar queries it is RAG-Fusion.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

from common.ranges import PositiveInt
from common.records import Answer, Asked, Question
from harness.interfaces import Reader
from harness.readers.read_answers import read_answers
from harness.retrievers.multi_query import EVERY, MultiQueryRetriever
from harness.retrievers.multi_query_records import counts, explanation
from harness.runtime.failures import answer_each
from harness.runtime.loading import load
from harness.runtime.long_questions import as_read, with_cuts
from harness.runtime.memo import FOR_STUDY, NEEDED, Memo


class Dmqr:
    """Searches with each question and its rewrites, fuses the results, and answers from the best k passages.

    The evidence is best first, with the scores of the fusion. Notes: `queries`, each with what made it, the ids it
    `found`, and the passages that it `alone` found; `passages`, by which queries each passage of the evidence was
    found, at which rank; `fallbacks`, why a strategy has no query of its own; `reason`, an adaptive rewriter's;
    `standalone`, of a question with earlier turns (`Question.history`), as what it was searched, reranked and read:
    `harness.rewriters.dialogue.stand_alone`.

    Args:
        args: Options of its search, which `harness.retrievers.multi_query.MultiQueryRetriever` explains; a config and
            the command line name them beside those of the system, where jsonargparse finds them.
        k: Number of passages after fusion.
        reader: Generates the answer from the question and the k passages; without a reader only the evidence is
            returned.
        kwargs: As `args`.

    Raises:
        UserError: If `rerank` has no scorer, or `feedback_retriever` is given to a rewriter that reads no passage.
        MissingInputError: If the serving folder or the file of the prior is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator, or the two search
            different corpora.
    """

    study = "harness.evaluation.dmqr.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.dmqr:Tuning"
    memo: Memo | None = None  # of an evaluation

    def __init__(self, *args: Any, k: PositiveInt = 5, reader: Reader | None = None, **kwargs: Any) -> None:
        self.search, self.reader, self.k = MultiQueryRetriever(*args, **kwargs), reader, k
        self.retriever, self.rewriter = self.search.retriever, self.search.rewriter
        self.feedback_retriever = self.search.feedback_retriever

    def with_settings(self, **settings: Any) -> Self:
        """This system with other settings of its search (`MultiQueryRetriever`); its parts are the same objects."""
        other = copy(self)
        other.search = self.search.with_settings(**settings)
        other.retriever, other.rewriter = other.search.retriever, other.search.rewriter
        other.feedback_retriever = other.search.feedback_retriever
        return other

    def load(self) -> None:
        """Load the reader, the rewriter, the retrievers and the scorer."""
        load(self.reader, self.search)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: one call of the rewriter, one batched search, batched scoring, one reader call.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        return answer_each(self, self._answers, questions)

    def _answers(self, given: Sequence[Question]) -> list[Answer]:
        self.load()
        questions = [*given]
        asked, cuts = as_read(self, questions)
        search, depth = (self.search.with_settings(memo=self.memo), EVERY) if self.memo else (self.search, self.k)
        batch = search.find(asked, depth)
        seconds = {f"seconds/{stage}": total / len(questions) for stage, total in batch.seconds.items()}
        tokens = 0.0 if self.memo else batch.tokens / len(questions)
        answers = []
        for question, found in zip(questions, batch.results, strict=True):
            own = replace(found, ranked=found.ranked[: self.k])
            costs = {**counts(own, tokens), **seconds}
            answer = Answer(question.id, "", own.ranked, costs=costs, notes=explanation(own))
            if self.memo is not None:
                answer.notes[NEEDED] = [*found.needed, *self.memo.reading(self.reader, question)]
                answer.notes[FOR_STUDY] = found
            answers.append(answer)
        for place, found in enumerate(batch.results):
            if questions[place].history:
                questions[place] = replace(questions[place], text=found.question, history=())
                answers[place].notes["standalone"] = found.question
        answers = [with_cuts(*each) for each in zip(answers, cuts, strict=True)]
        return read_answers(self.reader, questions, answers, self.memo)
