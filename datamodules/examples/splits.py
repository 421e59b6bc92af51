"""Which questions train and which validate: official files in, two disjoint lists out."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.errors import UserError
from common.records import Question, clean
from datamodules.formats.reading import read_questions


@dataclass
class Source:
    """One official file.

    Args:
        layout: Its layout, e.g. hotpotqa, twowiki, musique, ircot, fid, flashrag.
        path: The file (.json, .jsonl, gzip'd or not), or a Hugging Face data set as hf:<id>[:<config>]:<split>.
        limit: Read only the first so many questions; all when None.
    """

    layout: str
    path: str
    limit: int | None = None


def refuse_no_split(train: Sequence[Source], validation: Sequence[Source], fraction: float) -> None:
    """Refuse what `split_questions` could not split.

    Raises:
        UserError: If there is no training file, or neither validation files nor a fraction in (0, 1).
    """
    if not train:
        raise UserError("data.train names no file: give at least one {layout, path}.")
    if not validation and not 0 < fraction < 1:
        raise UserError(f"validation_fraction must lie in (0, 1) without validation files, got {fraction}.")


def split_questions(
    train: Sequence[Source], validation: Sequence[Source], fraction: float
) -> tuple[list[Question], list[Question]]:
    """Training and validation questions, each text once.

    With validation files those are held out, and left out of training; else a fixed hash split of the training files.

    Args:
        train: Training files.
        validation: Validation files; may be empty.
        fraction: Share of the hash split.
    """
    questions = list(distinct_questions(train))
    if validation:
        held_out = list(distinct_questions(validation))
        known = {clean(question.text) for question in held_out}
        return [question for question in questions if clean(question.text) not in known], held_out
    shares = [validation_share(question) for question in questions]
    return (
        [question for question, share in zip(questions, shares, strict=True) if share >= fraction],
        [question for question, share in zip(questions, shares, strict=True) if share < fraction],
    )


def validation_share(question: Question) -> float:
    """A fixed number in [0, 1) from the question's text: below the validation fraction it is held out of training."""
    digest = hashlib.sha256(clean(question.text).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def distinct_questions(sources: Sequence[Source]) -> Iterator[Question]:
    """The questions of all files, in order, each text once."""
    seen: set[str] = set()
    for source in sources:
        for question in read_questions(source.layout, source.path, source.limit):
            text = clean(question.text)
            if text not in seen:
                seen.add(text)
                yield question
