"""DMQR-RAG at inference: rewrite the question, search with it and its rewrites, rerank the union, read the best.

q -> q' = {q, RS_1(q), ..., RS_n(q)} -> D = Retriever(q') -> D' = Reranker(q, D) -> LLM(q, TopK(D'))  (Eq. 1-3)

Its baselines (Table 2) are options: without a rewriter it is retrieval with the original query (OQR), with `original`
false a rewrite replaces the question (LLM Rewrite, HyDE), with `fusion` rrf and similar queries it is RAG-Fusion.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from common.ranges import NonNegativeInt, PositiveInt, Precision
from common.records import Answer, Asked, Question
from harness.interfaces import Reader, Retriever, Rewriter
from harness.readers.read_answers import plain_read, read_answers
from harness.retrievers.multi_query import (
    EVERY,
    ORIGINAL,
    MultiQueryFusion,
    MultiQueryRetriever,
)
from harness.retrievers.multi_query_records import counts, explanation
from harness.retrievers.retriever_tree import note_unknown_words
from harness.runtime.failures import answer_each, with_cuts
from harness.runtime.loading import load
from harness.runtime.memo import FOR_STUDY, NEEDED, Memo
from harness.runtime.turns import reads_history, turn_notes, with_turns
from models.dmqr.strategies import PAPER

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator


class Dmqr:
    """Searches with each question and its rewrites, fuses the results, and answers from the best k passages.

    The evidence is best first, with the scores of the fusion. Notes: `queries`, each with what made it, the ids it
    `found`, and the passages that it `alone` found; `passages`, by which queries each passage of the evidence was
    found, at which rank; `fallbacks`, why a strategy has no query of its own; `reason`, an adaptive rewriter's;
    `standalone`, of a question with earlier turns (`Question.history`), as what it was searched, reranked and read:
    `harness.rewriters.dialogue.stand_alone`.

    Args:
        retriever: Searches with all queries of all questions together.
        rewriter: Makes the rewrites, such as harness.rewriters.llm.LlmRewriter; None searches with the question alone
            (OQR).
        strategies: Of the rewriter.
        per_query: Passages retrieved per query.
        k: Number of passages after fusion.
        fusion: `rerank`: by a scorer of (question, passage).  `rrf`: reciprocal rank fusion, as RAG-Fusion.
        serving: For `rerank`: folder with an estimator that RE-RAG's training exported, e.g.
            checkpoints/rerag-nq/serving, or folder or hub id of a cross-encoder, e.g. BAAI/bge-reranker-base.
        judged_by: For `rerank`: what passages are judged by, the `question` (Eq. 3), or the rewrite by one of the
            strategies.
        original: Whether the question itself searches, too; if not, only its rewrites do.
        rank_constant: Of `rrf`.
        scorer: A loaded scorer, instead of `serving`.
        reader: Generates the answer from the question and the k passages; without a reader only the evidence is
            returned.
        device: Of the scorer: auto, cpu or cuda.
        precision: Of the scorer: auto (bf16 where the device has it in hardware), fp32 or bf16.
        feedback_retriever: Finds the passages that a rewriter of words reads, such as BM25 beside a dense `retriever`;
            `retriever` itself when None.
        prior: For `rerank`: file that `infer.py tune` fitted: the order by reciprocal rank fusion
            counts beside the logits.

    Raises:
        UserError: If `rerank` has no scorer, or `feedback_retriever` is given to a rewriter that reads no passage.
        MissingInputError: If the serving folder or the file of the prior is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator, or the two search
            different corpora.
    """

    study = "harness.evaluation.dmqr.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.dmqr:Tuning"
    memo: Memo | None = None  # of an evaluation

    def __init__(
        self,
        retriever: Retriever,
        rewriter: Rewriter | None = None,
        strategies: tuple[str, ...] = PAPER,
        per_query: PositiveInt = 10,
        k: PositiveInt = 5,
        fusion: MultiQueryFusion = "rerank",
        serving: Path | None = None,
        original: bool = True,
        rank_constant: NonNegativeInt = 60,
        scorer: "RelevanceEstimator | None" = None,
        reader: Reader | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        judged_by: str = ORIGINAL,
        feedback_retriever: Retriever | None = None,
        prior: Path | None = None,
    ) -> None:
        self.retriever, self.rewriter, self.reader, self.k = retriever, rewriter, reader, k
        self.feedback_retriever = feedback_retriever
        self.search = MultiQueryRetriever(
            retriever, rewriter, strategies, per_query, fusion, serving, original, rank_constant, scorer, device,
            precision, judged_by, feedback_retriever=feedback_retriever, prior=prior,
        )  # fmt: skip

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
        asked = questions if reads_history(self) else [with_turns(question, self) for question in questions]
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
        note_unknown_words(self, questions, answers)
        if not reads_history(self):
            answers = [with_cuts(each, turn_notes(self, one)) for one, each in zip(given, answers, strict=True)]
        return read_answers(self.reader, questions, answers, self.memo.read if self.memo else plain_read)
