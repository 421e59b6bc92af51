"""The retriever of RE-RAG's study.

Every question's candidates with retriever scores, and the temperatures of these scores.

A strategy's retriever scores its own candidates. Without one the candidates are the passages that a question ships,
with the scores that its file gives where every passage of the question has one, else with a sentence encoder's cosine.
Scores of different sources differ in scale: each source has a temperature and a confidence. Shape legend: C candidates
of a question.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from harness.runtime.resumable import ResumableBatches
from models.rerag.temperature import fit_temperature

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


def fit_temperatures(
    sources: Collection[Source],
    training: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    saved: ResumableBatches | None = None,
) -> dict[Source, float]:
    """The temperature of each source's scores, fitted on training questions.

    Given scores are fitted on the training questions that have them, the cosine and a retriever's scores on all.

    Args:
        sources: Those that the evaluated questions need.
        training: All with answers.
        retriever: As in `retrieve`.
        encoder: As in `retrieve`.
        candidates: As in `retrieve`.
        saved: Resumable batches for what is computed.

    Raises:
        UserError: If given scores are needed and no training question has them, or no question tells anything about T.
    """
    fitted: dict[Source, float] = {}
    for source in sources:
        chosen = [question for question in training if question.given_scores] if source == "given" else training
        if not chosen:
            raise UserError(
                f"study.temperature_questions: none of the {len(training)} questions has a score for every passage, as "
                "those that are measured have: give training questions with scores of the same retriever, or omit the "
                "option."
            )
        keep = saved if source != "given" else None  # given scores are read, not computed
        scores = _training_scores(chosen, retriever, encoder, candidates, source == "given", keep)
        fitted[source] = fit_temperature(*scores, option="study.temperature_questions")
    return fitted


def _training_scores(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    candidates: int,
    use_given: bool,
    saved: ResumableBatches | None,
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.bool_]]]:
    """Retriever scores and has-answer labels of every question's candidates."""

    def work(batch: Sequence[Question]) -> list[tuple[list[float], list[bool]]]:
        retrieved = retrieve(batch, retriever, encoder, candidates, use_given)
        return [
            (each.scores_C.tolist(), has_answer_labels(question, each.passages).tolist())
            for question, each in zip(batch, retrieved, strict=True)
            if each.passages
        ]

    pairs = itertools.chain.from_iterable(
        (saved or ResumableBatches()).run(batches_of(questions), work, "temperature, batches")
    )
    arrays = [(np.array(scores, float), np.array(labels, bool)) for scores, labels in pairs]
    return [scores for scores, _ in arrays], [labels for _, labels in arrays]


def retrieval_facts(
    questions: Sequence[Question],
    retriever: Retriever | None,
    encoder: SentenceEncoder | None,
    temperatures: Mapping[Source, float],
    training: Sequence[Question] | None,
) -> list[str]:
    """For the report: where the scores come from and for how many questions, their temperatures and confidences."""
    counts = Counter(source_of(question, retriever) for question in questions)
    names: dict[Source, str] = {
        "given": "given scores",
        "cosine": f"cosine of {encoder.name} over each question's shipped passages" if encoder else "cosine",
        "retriever": "the strategy's retriever",
    }
    fitted_on: dict[Source, int] = dict.fromkeys(names, len(training or ()))
    fitted_on["given"] = sum(bool(question.given_scores) for question in training or ())
    shown: tuple[Source, ...] = ("retriever",) if retriever is not None else ("given", "cosine")
    parts = []
    for source in shown:
        part = names[source] + ("" if retriever else f": {counts[source]:,} of {len(questions):,} questions")
        if counts[source]:
            fitted = f"fitted on {fitted_on[source]:,} training questions" if source in temperatures else "not fitted"
            part += f"; temperature {temperatures.get(source, 1.0):.4g}, {fitted}"
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
