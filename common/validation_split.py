"""The hash split: which questions a training without validation files holds out."""

import hashlib
from collections.abc import Iterable, Iterator

from common.records import Question, nfkc


def validation_share(question: Question) -> float:
    """Hash of a question as a number in [0, 1): of its group, or dialogue, or text."""
    text = question.source.group or nfkc(question.history[0] if question.history else question.text)
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def validation_shares(questions: Iterable[Question]) -> list[float]:
    """For each question a number in [0, 1); those below the validation fraction are held out.

    Questions that belong together have the `validation_share` of their first one: questions of one group, one dialogue
    (the same first turn) or one text (case and spaces aside), and questions linked through others.
    """
    first: dict[tuple[str, str], int] = {}  # what questions belong together by -> the first of them
    of: list[int] = []  # an earlier question that belongs together with it, itself if there is none
    shares = []

    def root(place: int) -> int:
        while of[place] != place:
            of[place] = of[of[place]]
            place = of[place]
        return place

    for place, question in enumerate(questions):
        of.append(place)
        shares.append(validation_share(question))
        for key in belongs_to(question):
            one, other = root(first.setdefault(key, place)), root(place)
            of[max(one, other)] = min(one, other)
    return [shares[root(place)] for place in range(len(shares))]


def belongs_to(question: Question) -> Iterator[tuple[str, str]]:
    """The keys of a question: its text with the turns before it, its dialogue, its group.

    Questions that share a key belong together.
    """
    yield "text", "\n".join(nfkc(text).casefold() for text in (*question.history, question.text))
    if question.history:
        yield "text", nfkc(question.history[0]).casefold()
    if question.source.group:
        yield "group", question.source.group


def held_out(questions: Iterable[Question], fraction: float | None) -> Iterable[Question]:
    """The questions that a training holds out whose `validation_fraction` is `fraction`; None: all."""
    if fraction is None:
        return questions
    every = list(questions)
    return [each for each, share in zip(every, validation_shares(every), strict=True) if share < fraction]
