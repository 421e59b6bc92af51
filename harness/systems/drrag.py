"""DR-RAG at inference: two-stage retrieval, document selection by pair classification, one reader call.

q -> d_1..d_k1 -> q*_i = Concat(q, d_i) -> candidates d' -> C(q, d_i, d') -> at most k documents -> answer
"""

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

from common.errors import UserError
from common.ranges import PositiveInt, Precision
from common.records import Answer, Asked, Question, Ranked
from harness.interfaces import PairScorer, Reader, Retriever
from harness.readers.read_answers import read_answers
from harness.retrievers.corpora import check_same_corpus
from harness.retrievers.two_stage import StageResults, search_twice
from harness.runtime.failures import answer_each
from harness.runtime.loading import load
from harness.runtime.memo import FOR_STUDY, NEEDED, Memo, Needed
from harness.runtime.stages import stage_ended
from harness.selection.lazy_scoring import Decision, Pair, decide
from harness.selection.options import SelectionOptions
from harness.selection.tuned import completed, read_selection
from models.serving_manifest import manifest_sha256
from models.token_count import tokens_read

FIRST, SECOND = "first_stage", "second_stage"  # of retrieval


class DrRag:
    """Retrieves in two stages, selects at most k documents, and generates an answer from them.

    The evidence is in the order of selection, with the retriever's scores, which do not compare between the stages. The
    answer's notes say of each document (`documents`) which stage found it, its `rank` in Retriever(q) (None if only a
    second search found it), and its best pair among the chosen ones: the `partner` and the classifier's `probability`.

    Args:
        retriever: Used for both stages, or for the first.
        serving: Folder that training exported, e.g. checkpoints/drrag-hotpotqa/serving; `sm` and `qdc` need none.
        selection: The method, its budget k, and its options.
        lookahead: For `cfs`: number of candidates scored per round.
        scorer: A loaded classifier, instead of `serving`.
        reader: Generates the answer; without a reader only the evidence is returned.
        device: Device of the classifier: auto, cpu or cuda.
        precision: Of the classifier: auto (bf16 where the device has it in hardware), fp32 or bf16.
        selection_file: File of options for CFS (QDC and CIS) that `infer.py tune` chose on validation questions; those
            given in `selection` win.
        second_retriever: Searches the same corpus with q*_i = Concat(q, d_i); `retriever` when None.

    Raises:
        UserError: If the selection needs a classifier and none is given, or two are.
        MissingInputError: If the serving folder or the file is missing.
        ArtifactError: If the serving folder is corrupt or of another text format, the file is corrupt or belongs to
            another classifier, or the retrievers search different corpora.
    """

    study = "harness.evaluation.drrag.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.drrag:Tuning"
    memo: Memo | None = None  # of an evaluation

    def __init__(
        self,
        retriever: Retriever,
        serving: Path | None = None,
        selection: SelectionOptions = SelectionOptions(),  # noqa: B008 (frozen; these are the defaults that --help shows)
        lookahead: PositiveInt = 4,
        scorer: PairScorer | None = None,
        reader: Reader | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        selection_file: Path | None = None,
        second_retriever: Retriever | None = None,
    ) -> None:
        if serving is not None and scorer is not None:
            raise UserError("Both serving and scorer are given: give only one of them.")
        if selection.needs_classifier and serving is None and scorer is None:
            raise UserError(
                f"selection {selection.method} needs the trained classifier: name its folder with serving "
                "(checkpoints/<name>/serving), or choose sm or qdc."
            )
        self.retriever, self.second_retriever, self.reader = retriever, second_retriever, reader
        self.serving, self.lookahead, self.device, self.precision = serving, lookahead, device, precision
        self._scorer, self.selection_file, self.given = scorer, selection_file, selection

    def load(self) -> None:
        """Load the options of `selection_file`, the classifier, the reader and the retrievers."""
        _ = self.selection, self.scorer
        load(self.reader, self.retriever, self.second_retriever)
        if self.second_retriever is not None:
            check_same_corpus([self.retriever, self.second_retriever])

    @cached_property
    def scorer(self) -> PairScorer | None:
        """The classifier; None without one."""
        if self.serving is None:
            return self._scorer
        from models.drrag.triple_classifier import TripleClassifier

        return TripleClassifier.load(Path(self.serving), self.device, precision=self.precision)

    @cached_property
    def selection(self) -> SelectionOptions:
        """The options as they are used."""
        return self.complete(self.given)

    def with_selection(self, selection: SelectionOptions) -> Self:
        """This system with another selection: its parts are the same objects."""
        _ = self.scorer
        other = copy(self)
        other.given = selection
        other.__dict__.pop("selection", None)
        return other

    def complete(self, selection: SelectionOptions) -> SelectionOptions:
        """A selection with the options of `selection_file` and the classifier's threshold where it has None."""
        selection = self.tuned(selection)
        if selection.threshold is None:
            selection = replace(selection, threshold=self.scorer.threshold if self.scorer else 0.5)
        return selection

    def tuned(self, selection: SelectionOptions) -> SelectionOptions:
        """A selection with the options of `selection_file`, if one is given.

        Raises:
            UserError: If the file has nothing for its k.
            MissingInputError: If the file is missing.
            ArtifactError: If it is corrupt, or of another classifier than that of the serving folder.
        """
        if self.selection_file is None:
            return selection
        file = Path(self.selection_file)
        return completed(selection, read_selection(file, manifest_sha256(self.serving)), file)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: two batched searches, batched pair scoring, one reader call.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        return answer_each(self, self._answers, questions)

    def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        self.load()
        options = self.selection
        retrieval = search_twice(
            self.retriever,
            questions,
            options.ranking_size,
            {options.question_copies: (options.concatenations, options.concatenated_size)},
            self.second_retriever,
            *(map(self.memo.searches, (FIRST, SECOND)) if self.memo else ()),
        )[options.question_copies]
        first = [tuple(results.hits[0][: options.ranking_size]) for results in retrieval.results]
        stage_ended("retrieval", [Answer(each.id, "", hits) for each, hits in zip(questions, first, strict=True)])
        started, tokens = time.perf_counter(), tokens_read(self.scorer)
        decisions = self._decide(questions, retrieval.results)
        scoring_seconds = time.perf_counter() - started
        seconds = {
            f"seconds/{FIRST}": retrieval.first_seconds,
            f"seconds/{SECOND}": retrieval.second_seconds,
            "seconds/scoring": scoring_seconds,
        }
        shared = {"tokens": float(tokens_read(self.scorer) - tokens), **seconds}
        per_question = {name: value / max(1, len(questions)) for name, value in shared.items()}
        answers = [
            selected_answer(self.selection, question, results, decision, per_question)
            for question, results, decision in zip(questions, retrieval.results, decisions, strict=True)
        ]
        if self.memo is not None:
            decided = zip(answers, retrieval.results, decisions, strict=True)
            answers = [self._needing(q, *each, self.memo) for q, each in zip(questions, decided, strict=True)]
        return read_answers(self.reader, questions, answers, self.memo)

    def _needing(
        self, question: Question, answer: Answer, found: StageResults, decision: Decision, memo: Memo
    ) -> Answer:
        """The answer with notes on what it needs by itself: searches, pairs with their scores, a reading."""
        options = self.selection
        second, searches = self.second_retriever or self.retriever, int(answer.costs["retriever_calls"]) - 1
        needed = [
            memo.searched(FIRST, self.retriever, 1, options.ranking_size),
            memo.searched(SECOND, second, searches, options.concatenated_size),
            Needed("scoring", memo.of("scores", self.scorer), len(decision.scores)),
            *memo.reading(self.reader, question),
        ]
        costs = {name: cost for name, cost in answer.costs.items() if name != "tokens"}
        return replace(answer, costs=costs, notes={**answer.notes, NEEDED: needed, FOR_STUDY: decision.scores})

    def _decide(self, questions: Sequence[Question], results: Sequence[StageResults]) -> list[Decision]:
        """Select documents for all questions."""
        scorer = self.scorer

        def score_batch(requested: list[tuple[int, Pair]]) -> list[float]:
            assert scorer is not None  # checked in __init__
            triples = [
                (questions[job].text, results[job].passages[d1], results[job].passages[d2])
                for job, (d1, d2) in requested
            ]
            return self.memo.scores(scorer, triples) if self.memo else [*scorer.probabilities(triples)]

        return decide([(self.selection, each.rankings) for each in results], score_batch, self.lookahead)


def selected_answer(
    options: SelectionOptions, question: Question, found: StageResults, decision: Decision, shared: dict[str, float]
) -> Answer:
    """The evidence that a selection chose, with notes and costs, without a text.

    Args:
        options: Of the selection.
        question: The question.
        found: Both retrieval stages' results; may be those of a deeper retrieval than the selection needs.
        decision: The chosen documents, and the pair scores used.
        shared: Further costs of this question: tokens, seconds per stage.
    """
    chosen = decision.documents
    _, pools = options.stages(found.rankings)
    candidates = {d for pool in pools for d in pool} if options.method != "sm" else set()
    ranks = {document: rank for rank, document in enumerate(found.rankings.ranking[: options.ranking_size], start=1)}
    notes = []
    for document in chosen:
        stage = "second" if document in candidates else "first"
        partner, probability = best_partner(document, chosen, decision.scores)
        why = {"partner": partner, "probability": probability, "rank": ranks.get(document)}
        notes.append({"id": document, "stage": stage, **why})
    searches = min(options.concatenations, len(found.rankings.concatenated))
    scores = found.scores(options.ranking_size, options.concatenations, options.concatenated_size)
    return Answer(
        question_id=question.id,
        text="",
        evidence=tuple(Ranked(found.passages[d], scores[d]) for d in chosen),
        costs={"retriever_calls": 1.0 + searches, "model_calls": float(len(decision.scores)), **shared},
        notes={"selection": options.method, "documents": notes},
    )


def best_partner(document: str, chosen: Sequence[str], scores: dict[Pair, float]) -> tuple[str | None, float | None]:
    """The chosen document with the highest pair probability with this one, and that probability.

    None if none was scored.
    """
    pairs = [
        (probability, d2 if document == d1 else d1)
        for (d1, d2), probability in scores.items()
        if document in (d1, d2) and d1 in chosen and d2 in chosen
    ]
    probability, partner = max(pairs, default=(None, None))
    return partner, probability
