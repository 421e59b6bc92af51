"""The retriever of RE-RAG's study.

Every question's candidates with retriever scores.

A strategy's retriever scores its own candidates. Without one the candidates are the passages that a question ships,
with the scores that its file gives where every passage of the question has one, else with a sentence encoder's cosine.
Scores of different sources differ in scale: each source has a temperature and a confidence. Shape legend: C candidates
of a question.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.errors import UserError
from common.records import Passage, Question
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.interfaces import Retriever
from harness.retrievers.shipped import cosines, given_ranking
from harness.strategies.rerag import ReRag
from models.pretrained import MINILM

Source = Literal["given", "cosine", "retriever"]  # where a question's retriever scores come from
QUESTIONS_AT_ONCE = 32  # bounds the memory of tokens and encoder states


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One question's candidates in the retriever's order, best first."""

    passages: tuple[Passage, ...]
    scores_C: NDArray[np.float64]


def source_of(question: Question, retriever: Retriever | None) -> Source:
    """Where the retriever scores of a question come from."""
    if retriever is not None:
        return "retriever"
    return "given" if question.given_scores else "cosine"


def retrieve(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    use_given: bool = True,
) -> list[Retrieved]:
    """Every question's candidates.

    The retriever's best, or its shipped passages ranked by given scores, else by cosine.

    Args:
        questions: The questions.
        retriever: None for the questions' shipped passages.
        encoder: For the questions without given scores; None if there are none.
        candidates: Number of passages that the retriever finds.
        use_given: Whether to use given scores; the cosine for all questions if not.

    Raises:
        UserError: If there is no retriever and a question ships no passages.
    """
    if retriever is not None:
        found = retriever.search([question.text for question in questions], candidates)
        return [Retrieved(tuple(h.passage for h in hits), np.array([h.score for h in hits], float)) for hits in found]
    for question in questions:
        if not question.passages:
            raise UserError(
                f"question {question.id!r} comes without passages and the strategy has no retriever: "
                "configure --strategy.init_args.retriever, or choose a file that ships passages."
            )
    unscored = [question for question in questions if not (use_given and question.given_scores)]
    computed: Iterator[NDArray[np.float64]] = iter(())
    if unscored:
        assert encoder is not None
        computed = iter(cosines(unscored, encoder))
    retrieved = []
    for question in questions:
        if use_given and question.given_scores:
            hits = given_ranking(question)
            retrieved.append(Retrieved(tuple(h.passage for h in hits), np.array([h.score for h in hits], float)))
            continue
        cosine_C = next(computed)
        order = np.argsort(-cosine_C, kind="stable")
        retrieved.append(Retrieved(tuple(question.passages[i] for i in order), cosine_C[order]))
    return retrieved


def has_answer_labels(question: Question, passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """DPR's has-answer label of every passage: whether it contains one of the question's answers."""
    return np.array([has_answer(passage.text, question.answers) for passage in passages], dtype=bool)


def batches_of(questions: Sequence[Question]) -> list[Sequence[Question]]:
    """The questions in groups that are computed, and saved, together."""
    return [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]


def encoder_of(strategy: ReRag, name: str | None) -> SentenceEncoder:
    """The encoder whose cosine ranks shipped passages, on the estimator's device; MiniLM without a name."""
    estimator = strategy.model.estimator
    device = strategy.device if estimator is None else str(estimator.network.device)
    return SentenceEncoder(name or MINILM, device, precision=strategy.precision)


def retrieval_facts(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    temperatures: Mapping[Source, tuple[float, int]],
) -> list[str]:
    """For the report: where the scores come from and for how many questions, their temperatures and confidences.

    Args:
        questions: Those that are measured.
        retriever: As in `retrieve`.
        encoder: As in `retrieve`.
        temperatures: By source, and on how many questions each was fitted; 1 for a source that is not in it.
    """
    counts = Counter(source_of(question, retriever) for question in questions)
    names: dict[Source, str] = {
        "given": "given scores",
        "cosine": f"cosine of {encoder.name} over each question's shipped passages" if encoder else "cosine",
        "retriever": "the strategy's retriever",
    }
    shown: tuple[Source, ...] = ("retriever",) if retriever is not None else ("given", "cosine")
    parts = []
    for source in shown:
        part = names[source] + ("" if retriever else f": {counts[source]:,} of {len(questions):,} questions")
        if counts[source]:
            temperature, count = temperatures.get(source, (1.0, 0))
            fitted = f"fitted on {count:,} training questions" if count else "not fitted"
            part += f"; temperature {temperature:.4g}, {fitted}"
        parts.append(part)
    facts = ["retriever's ranking and scores: " + "; ".join(parts)]
    partial = sum(any(s is not None for s in q.scores) and not q.given_scores for q in questions)
    if partial and retriever is None:
        facts.append(f"{partial:,} questions have scores for some of their passages only, which are not used")
    confidence: dict[Source, str] = {
        "given": "given scores, min-max scaled to 0..1 over all candidates that have one",
        "cosine": "cosine",
        "retriever": "score, min-max scaled to 0..1 over all candidates",
    }
    facts.append("retriever's confidence: " + "; ".join(text for source, text in confidence.items() if counts[source]))
    if len(counts) > 1:
        facts[-1] += (
            ". The two do not compare, so where questions are compared by the retriever's confidence, both are mixed"
        )
    return facts
