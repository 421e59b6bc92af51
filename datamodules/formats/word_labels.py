"""File format of word labels, written by `infer.py label` and read by training.

How much each word changes a question's retrieval.

JSON Lines, one question per line:

    {"question_id", "question", "recall": f(q), "without": {word: change}, "with": {word: change},
     "passages": [{"title", "text"}, ... feedback passages, best first], "text_version",
     "words": version of what a word is}

    f(query)      mean over the question's gold passages of  C² / (C² + rank²),  0 for a passage that is not found
    "without"     f(q without the word) - f(q), for distinct words of the question
    "with"        f(q + " " + word) - f(q), for distinct words of the passages that are not in the question

Words are as they are compared (`common.words`).  Changes of 0 are not stored.  `text_version` is that of
`common.records`; files with texts or words of another version are refused.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from statistics import fmean

from common.errors import DataError, MissingInputError
from common.records import OTHER_TEXTS, TEXT_VERSION, Passage, passage_text
from common.words import WORDS, new_words
from datamodules.formats import row_fields as fields
from datamodules.formats.conversion import converted
from datamodules.formats.open_data import first_fields, rows
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.row_fields import Row

_FIELDS = {"question_id", "question", "recall", "without", "with", "passages"}
_VERSIONS = {"text_version", "words"}
_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class WordLabels:
    """The labels of one question.  Words that a mapping lacks change nothing."""

    question_id: str
    question: str
    recall: float  # f(q), 0 to 1
    without_word: Mapping[str, float]  # word of the question -> change of f when it is left out, -1 to 1
    with_word: Mapping[str, float]  # word of the passages -> change of f when it joins the question, -1 to 1
    passages: tuple[Passage, ...]  # feedback passages, best first


def averaged(labels: Sequence[WordLabels]) -> WordLabels:
    """The labels of one question by several retrievers: the mean change of every word over those that have labelled it.

    The passages are those of all, interleaved by rank; a word is labelled by a retriever if one of its passages has it.

    Args:
        labels: Of the same question, at least one.
    """
    first, *others = labels
    if not others:
        return first
    words = [new_words(each.question, (passage_text(passage) for passage in each.passages)) for each in labels]
    changes: dict[str, list[float]] = {}
    for each, own in zip(labels, words, strict=True):
        for word in own:
            changes.setdefault(word, []).append(each.with_word.get(word, 0.0))
    own_words = dict.fromkeys(word for each in labels for word in each.without_word)
    ranks = chain.from_iterable(zip_longest(*(each.passages for each in labels)))
    return WordLabels(
        first.question_id,
        first.question,
        fmean(each.recall for each in labels),
        {word: fmean(each.without_word.get(word, 0.0) for each in labels) for word in own_words},
        {word: fmean(values) for word, values in changes.items()},
        tuple(dict.fromkeys(passage for passage in ranks if passage is not None)),
    )


def is_word_labels(path: Path) -> bool:
    """Whether a file is one of word labels, by its first line."""
    return first_fields(path) - _VERSIONS == _FIELDS


def to_row(labels: WordLabels) -> dict[str, object]:
    """A row of the file: changes are rounded to 4 decimals, and those of 0 are left out."""
    return {
        "question_id": labels.question_id,
        "question": labels.question,
        "recall": round(labels.recall, _DECIMALS),
        "without": _stored(labels.without_word),
        "with": _stored(labels.with_word),
        "passages": [{"title": passage.title, "text": passage.text} for passage in labels.passages],
        "text_version": TEXT_VERSION,
        "words": WORDS,
    }


def from_row(row: Row) -> WordLabels:
    """The labels of a row of the file.

    Raises:
        DataError: If a field is missing or has another type or range, named, or the texts or the words are another
            release's.
    """
    if row.get("text_version") != TEXT_VERSION:
        raise DataError(OTHER_TEXTS.rstrip("."))
    if row.get("words") != WORDS:
        raise DataError("these are labels of another version, which told words apart otherwise")
    found = [
        Passage.of(fields.optional_text(passage, "title"), fields.text(passage, "text"))
        for passage in fields.optional_objects(row, "passages")
    ]
    return WordLabels(
        fields.identity(row, "question_id"),
        fields.filled_text(row, "question"),
        _number(fields.get(row, "recall"), "field 'recall'", 0),
        _changes(row, "without"),
        _changes(row, "with"),
        tuple(found),
    )


def word_label_rows(path: str, limit: int | None = None, counts: RowCounts | None = None) -> Iterator[WordLabels]:
    """The labels of a file, in order, read lazily.

    Args:
        path: The file.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts the rows that are left out.

    Raises:
        MissingInputError: If the file does not exist.
        DataError: If a row is invalid; names file and line.
    """
    if not Path(path).exists():
        raise MissingInputError(f"{path} does not exist: write it with `python infer.py label --out {path} ...`.")
    cure, counts = f"Run `python infer.py label --out {path} ...` again.", counts or RowCounts()

    def look(row: Row, place: str) -> None:
        counts.add_unknown_fields(row, _FIELDS | _VERSIONS, "of word labels", place)

    return converted(path, islice(rows(path), limit), from_row, lambda *_: cure, counts, look=look)


def _stored(changes: Mapping[str, float]) -> dict[str, float]:
    rounded = {word: round(change, _DECIMALS) for word, change in changes.items()}
    return {word: change for word, change in rounded.items() if change}


def _changes(row: Row, field: str) -> dict[str, float]:
    changes = fields.as_object(fields.get(row, field), f"field '{field}'")
    return {word: _number(change, f"{word!r} in field '{field}'", -1) for word, change in changes.items()}


def _number(value: object, what: str, least: float) -> float:
    """A number from `least` to 1.  Raises DataError, naming it by `what`, if it is not."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= 1:
        raise DataError(f"{what} is {json.dumps(value)[:40]}, not a number from {least} to 1")
    return float(value)
