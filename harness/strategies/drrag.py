"""DR-RAG at inference: two-stage retrieval, a classifier that judges pairs of documents, one reader call (`papers.md` A).

q -> d_1..d_k1 -> q*_i = Concat(q, d_i) -> candidates d' -> C(q, d_i, d') -> at most k documents -> answer
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.errors import UserError
from common.records import Answer, Question, Ranked
from harness.interfaces import PairScorer, Reader, Retriever
from harness.retrievers.two_stage import StageResults, search_twice
from harness.selection.lazy_scoring import Decision, Pair, decide
from harness.selection.options import SelectionOptions


class DrRag:
    """Retrieves twice, chooses at most k documents, and has a reader answer from them.

    The evidence comes in the order in which it was chosen, with the retriever's own scores; what the classifier said of
    each document is in the answer's notes.

    Args:
        retriever: Serves both stages.
        serving: Folder that training exported, e.g. checkpoints/drrag-hotpotqa/serving; `sm` and `qdc` need none.
        selection: The method, its budget k, and its options.
        lookahead: For `cfs`: candidates scored at a time while it walks down a list.
        scorer: A classifier already at hand, instead of `serving`.
        reader: Writes the answer; without one the evidence is the answer.
        device: auto, cpu or cuda: where the classifier computes.

    Raises:
        UserError: If a value is not allowed, or the selection needs a classifier and none is given.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If the serving folder is corrupt or of another text format.
    """

    def __init__(
        self,
        retriever: Retriever,
        serving: Path | None = None,
        selection: SelectionOptions = SelectionOptions(),  # noqa: B008 (frozen; these are the defaults that --help shows)
        lookahead: int = 4,
        scorer: PairScorer | None = None,
        reader: Reader | None = None,
        device: str = "auto",
    ) -> None:
        if lookahead < 1:
            raise UserError(f"lookahead is {lookahead}; it must be at least 1.")
        if serving is not None and scorer is not None:
            raise UserError("Both serving and scorer are given: leave one of them out.")
        if selection.needs_classifier and serving is None and scorer is None:
            raise UserError(
                f"selection {selection.method} needs the trained classifier: name its folder with serving "
                "(checkpoints/<name>/serving), or choose sm or qdc."
            )
        self.retriever, self.reader, self.serving, self.lookahead = retriever, reader, serving, lookahead
        self.scorer = scorer
        if serving is not None:
            from models.drrag.triple_classifier import TripleClassifier

            self.scorer = TripleClassifier.load(Path(serving), device)
        if selection.threshold is None:
            selection = replace(selection, threshold=self.scorer.threshold if self.scorer else 0.5)
        self.selection = selection

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """One answer per question: two batched searches in all, few scoring passes, one reader call."""
        options = self.selection
        retrieval = search_twice(
            self.retriever,
            [question.text for question in questions],
            options.ranking_size,
            options.concatenations,
            options.concatenated_size,
        )
        started = time.perf_counter()
        decisions = self._decide(questions, retrieval.found)
        scoring_seconds = time.perf_counter() - started
        seconds = {
            "seconds/first_stage": retrieval.first_seconds,
            "seconds/second_stage": retrieval.second_seconds,
            "seconds/scoring": scoring_seconds,
        }
        answers = [
            self._answer(question, found, decision, {name: value / len(questions) for name, value in seconds.items()})
            for question, found, decision in zip(questions, retrieval.found, decisions, strict=True)
        ]
        return self._read(questions, answers) if self.reader is not None and questions else answers

    def _decide(self, questions: Sequence[Question], found: Sequence[StageResults]) -> list[Decision]:
        """Choose documents for all questions; a triple that two questions share is scored once."""
        scorer = self.scorer

        def score_batch(asked: list[tuple[int, Pair]]) -> list[float]:
            assert scorer is not None  # a selection that asks for scores is refused without one
            keys = [(questions[job].text, pair) for job, pair in asked]
            triples = {
                key: (key[0], found[job].passages[pair[0]], found[job].passages[pair[1]])
                for key, (job, pair) in zip(keys, asked, strict=True)
            }
            scores = dict(zip(triples, scorer.probabilities(list(triples.values())), strict=True))
            return [scores[key] for key in keys]

        return decide([(self.selection, each.candidates) for each in found], score_batch, self.lookahead)

    def _answer(self, question: Question, found: StageResults, decision: Decision, seconds: dict[str, float]) -> Answer:
        """The evidence and its account, before a reader has seen it."""
        chosen = decision.documents
        first = set(found.candidates.ranking[: self.selection.first_size])
        notes = []
        for document in chosen:
            stage = "first" if document in first or self.selection.method == "sm" else "second"
            partner, probability = best_partner(document, chosen, decision.scores)
            notes.append({"id": document, "stage": stage, "partner": partner, "probability": probability})
        return Answer(
            question_id=question.id,
            text="",
            evidence=tuple(Ranked(found.passages[d], found.scores[d]) for d in chosen),
            costs={
                "retriever_calls": 1.0 + len(found.candidates.concatenated),
                "model_calls": float(len(decision.scores)),
                **seconds,
            },
            notes={"selection": self.selection.method, "documents": notes},
        )

    def _read(self, questions: Sequence[Question], answers: Sequence[Answer]) -> list[Answer]:
        """The reader's text, with the account of retrieval kept."""
        assert self.reader is not None
        started = time.perf_counter()
        texts = self.reader.read(questions, [answer.evidence for answer in answers])
        seconds = (time.perf_counter() - started) / len(questions)
        return [
            replace(
                text,
                evidence=answer.evidence,
                costs={**_sum(answer.costs, text.costs), "seconds/reading": seconds},
                notes={**answer.notes, **text.notes},
            )
            for answer, text in zip(answers, texts, strict=True)
        ]


def best_partner(document: str, chosen: Sequence[str], scores: dict[Pair, float]) -> tuple[str | None, float | None]:
    """The chosen document that this one goes best with, and the probability; None where no such pair was scored."""
    pairs = [
        (probability, d2 if document == d1 else d1)
        for (d1, d2), probability in scores.items()
        if document in (d1, d2) and d1 in chosen and d2 in chosen
    ]
    probability, partner = max(pairs, default=(None, None))
    return partner, probability


def _sum(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Costs of two steps together."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in [*one, *(n for n in other if n not in one)]}
