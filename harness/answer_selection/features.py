"""Features of the answers of several sources, for a learned selection; none reads a gold answer.

Shape legend: F features.
"""

from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import squad
from common.context_sources import SOURCES
from common.records import Answer, Question, nfkc
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.answer_texts import is_refusal
from harness.answer_selection.estimator import ContextProbability

FEATURES = (
    *(f"source is {source}" for source in SOURCES),
    "refusal",
    "mean cosine to the others",
    "greatest cosine to the others",
    "share of the others that are equal",
    "other answers",
    "P(relevant)",
    "lead in P(relevant)",
    "log-probability",
    "lead in log-probability",
    "log of words",
    "stands in the question",
    "stands in its context",
)
_MIN_LOGPROB = -20.0  # nats; below that all are the same


def answer_features(
    questions: Sequence[Question],
    answers: Sequence[Mapping[str, Answer]],
    encoder: AnswerEncoder,
    probability: ContextProbability,
) -> list[dict[str, NDArray[np.float64]]]:
    """The features (F,) of every source that has an answer, by source, for every question.

    A probability or log-probability that is not known counts as 0, as it does for the source `none`, which has no
    context.

    Args:
        questions: The questions.
        answers: Of each question by source.
        encoder: Of the cosines.
        probability: Of the contexts.
    """
    texts = [{source: answer.text for source, answer in each.items() if answer.text} for each in answers]
    cosines = encoder.cosines([[*each.values()] for each in texts])
    relevance = probability(questions, answers)
    return [
        _of_question(question, {source: each[source] for source in own}, cosines_AA, known)
        for question, each, own, cosines_AA, known in zip(questions, answers, texts, cosines, relevance, strict=True)
    ]


def _of_question(
    question: Question,
    answers: Mapping[str, Answer],
    cosines_AA: NDArray[np.float64],
    relevance: Mapping[str, float | None],
) -> dict[str, NDArray[np.float64]]:
    """Of the sources with an answer; the cosines are in their order."""
    normal = {source: squad(nfkc(answer.text)) for source, answer in answers.items()}
    p = {source: relevance[source] or 0.0 for source in answers}
    logprob = {source: max(answer.logprob or 0.0, _MIN_LOGPROB) for source, answer in answers.items()}
    asked = f" {squad(nfkc(question.text))} "
    found = {}
    for place, (source, answer) in enumerate(answers.items()):
        others = [other for other in answers if other != source]
        to_others = np.delete(cosines_AA[place], place)
        read = nfkc(" ".join(f"{hit.passage.title} {hit.passage.text}" for hit in answer.evidence))
        context = f" {squad(read)} "
        found[source] = np.array(
            [
                *(float(source == each) for each in SOURCES),
                float(is_refusal(answer.text)),
                float(to_others.mean()) if others else 0.0,
                float(to_others.max()) if others else 0.0,
                sum(normal[other] == normal[source] for other in others) / max(1, len(others)),
                float(len(others)),
                p[source],
                p[source] - max((p[other] for other in others), default=0.0),
                logprob[source],
                logprob[source] - max((logprob[other] for other in others), default=0.0),
                log1p(len(answer.text.split())),
                float(f" {normal[source]} " in asked),
                float(f" {normal[source]} " in context),
            ]
        )
    return found
