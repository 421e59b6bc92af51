"""The answers from several sources: refusals, the estimator's probability that a reader noted, the greatest score.

Standard library only.
"""

import re
from collections.abc import Mapping

from common.answer_metrics import squad
from common.context_sources import SelectedSource
from common.records import Answer, nfkc

NO_ANSWER = "no source has an answer"
_REFUSAL = re.compile(  # of a normalized text, which has no punctuation and no articles
    r"(?:unanswerable|unknown|none|na|no answer)|(?:not (?:known|given|mentioned|provided|specified|available|"
    r"enough information)|no (?:answer is|information)|insufficient information|cannot be (?:determined|answered)|"
    r"i (?:do not|dont|cannot|can not|cant) (?:know|answer|determine|find)|it is (?:not known|unknown))\b.*"
)


def is_refusal(text: str) -> bool:
    """Whether a text says that there is no answer: unanswerable, "I don't know", "not mentioned in the documents"."""
    return bool(_REFUSAL.fullmatch(squad(nfkc(text))))


def answered(answers: Mapping[str, Answer]) -> list[str]:
    """The sources with an answer, in order: refusals only if all are; empty if no source has a text."""
    texts = [source for source, answer in answers.items() if answer.text]
    return [source for source in texts if not is_refusal(answers[source].text)] or texts


def greatest(answers: Mapping[str, Answer], scores: dict[str, float], why: str) -> SelectedSource:
    """The source with the greatest score, the first of equal ones; the first source if there is no score.

    Args:
        answers: Of a question by source.
        scores: Of the sources with an answer.
        why: What a score is; it is followed by the greatest one.
    """
    if not scores:
        return SelectedSource(next(iter(answers)), NO_ANSWER)
    best = max(scores, key=lambda source: scores[source])
    return SelectedSource(best, f"{why} {scores[best]:.3f}", scores)


def noted_probability(answer: Answer) -> float | None:
    """The greatest calibrated P(relevant) that a reader noted of its contexts (`harness.readers.t5.explanation`).

    None if it noted none.
    """
    contexts = answer.notes.get("contexts")
    found = [each.get("probability") for each in contexts] if isinstance(contexts, list) else []
    return max((float(each) for each in found if each is not None), default=None)
