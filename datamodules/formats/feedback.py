"""File formats of retrieval feedback, written by `infer.py feedback` and read by training.  Standard library only.

OUT/feedback.jsonl, one row per line, of one of two layouts:

    rewrite_feedback  {"question_id", "question", "history": [turns], "strategy", "question_reward",
                       "candidates": [{"rewrite", "reward", "log_probability" or null, "times", "greedy"}]}
    word_feedback     {"question_id", "question", "passages": [{"title", "text"}], "question_reward",
                       "candidates": [{"left_out": [places], "joins": [words], "reward", "log_probability", "times",
                                       "greedy"}]}

OUT/feedback.json, what the rows came from: {"layout", "round", "policy", ...}. `policy` of word_feedback says how
scores become probabilities: {"passages", "stay_probability", "join_probability", "temperature", "strategies"}.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from common.errors import DataError, MissingInputError
from common.feedback import Candidate, RewriteFeedback, WordCandidate, WordFeedback
from common.records import Passage
from common.words import words_of
from datamodules.formats import row_fields as fields
from datamodules.formats.row_fields import Row
from datamodules.formats.sources import rows

REWRITE, WORD = "rewrite_feedback", "word_feedback"
FEEDBACK_LAYOUTS = (REWRITE, WORD)
ROWS, MANIFEST = "feedback.jsonl", "feedback.json"
_CURE = "Run `python infer.py feedback` again."
_Record = TypeVar("_Record", RewriteFeedback, WordFeedback)


def to_row(feedback: RewriteFeedback | WordFeedback) -> dict[str, Any]:
    """A row of the file."""
    row = asdict(feedback)
    if isinstance(feedback, WordFeedback):
        row["passages"] = [{"title": passage.title, "text": passage.text} for passage in feedback.passages]
    return row


def feedback_lines(feedback: Iterable[RewriteFeedback | WordFeedback]) -> Iterator[str]:
    """The lines of a file, with their ends."""
    return (json.dumps(to_row(each), ensure_ascii=False) + "\n" for each in feedback)


def read_manifest(folder: str) -> dict[str, Any]:
    """What the feedback in a folder came from.

    Raises:
        MissingInputError: If the folder does not exist or holds no feedback.
        DataError: If the file is invalid.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise MissingInputError(f"{path} does not exist: write it with `python infer.py feedback --out {folder} ...`.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["layout"] not in FEEDBACK_LAYOUTS:
            raise ValueError(f"the layout {manifest['layout']!r} is unknown")
        if type(manifest["round"]) is not int or manifest["round"] < 1:
            raise ValueError(f"round is {manifest['round']!r}, not a whole number from 1")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a file of this command ({error}). {_CURE}") from error
    return manifest


def read_rewrite_feedback(folder: str) -> list[RewriteFeedback]:
    """The rows of a folder in the layout rewrite_feedback, in order.

    Raises:
        MissingInputError: If the folder does not exist or holds no feedback.
        DataError: If it is of another layout, or a row is invalid; names file and line.
    """
    return _read(folder, REWRITE, rewrite_feedback)


def read_word_feedback(folder: str) -> list[WordFeedback]:
    """The rows of a folder in the layout word_feedback, in order; errors as of `read_rewrite_feedback`."""
    return _read(folder, WORD, word_feedback)


def rewrite_feedback(row: Row) -> RewriteFeedback:
    """The record of a row.

    Raises:
        DataError: If it is invalid.
    """
    return RewriteFeedback(
        fields.identity(row, "question_id"),
        fields.filled_text(row, "question"),
        fields.filled_text(row, "strategy"),
        _number(fields.get(row, "question_reward"), "field 'question_reward'"),
        _candidates(row, _candidate),
        tuple(fields.optional_texts(row, "history")),
    )


def word_feedback(row: Row) -> WordFeedback:
    """The record of a row.

    Raises:
        DataError: If it is invalid.
    """
    question = fields.filled_text(row, "question")
    count = len(words_of(question))
    passages = [
        Passage.of(fields.optional_text(each, "title"), fields.text(each, "text"))
        for each in fields.optional_objects(row, "passages")
    ]
    return WordFeedback(
        fields.identity(row, "question_id"),
        question,
        tuple(passages),
        _number(fields.get(row, "question_reward"), "field 'question_reward'"),
        _candidates(row, lambda each: _word_candidate(each, count)),
    )


def _read(folder: str, layout: str, record: Callable[[Row], _Record]) -> list[_Record]:
    if (found := read_manifest(folder)["layout"]) != layout:
        raise DataError(f"{folder} has the layout {found}; needed: {layout}.")
    path = Path(folder) / ROWS
    if not path.is_file():
        raise MissingInputError(f"{path} does not exist. {_CURE}")
    records = []
    for place, row in rows(str(path)):
        try:
            records.append(record(row))
        except DataError as error:
            raise DataError(f"{path}, {place}: {error}. {_CURE}") from error
    return records


def _candidates(row: Row, record: Callable[[Row], Any]) -> tuple[Any, ...]:
    found = tuple(record(each) for each in fields.records(fields.get(row, "candidates"), "field 'candidates'"))
    if not found:
        raise DataError("field 'candidates' is empty")
    return found


def _candidate(row: Row) -> Candidate:
    logp = row.get("log_probability")
    return Candidate(
        fields.filled_text(row, "rewrite"),
        _number(fields.get(row, "reward"), "field 'reward'"),
        None if logp is None else _log_probability(logp),
        _times(row),
        fields.flag(row, "greedy"),
    )


def _word_candidate(row: Row, words: int) -> WordCandidate:
    left_out = fields.as_list(fields.get(row, "left_out"), "field 'left_out'")
    if any(type(each) is not int or not 0 <= each < words for each in left_out):
        raise DataError(
            f"field 'left_out' is {json.dumps(left_out)[:40]}, not places among the question's {words} words"
        )
    return WordCandidate(
        tuple(left_out),
        tuple(
            fields.as_text(each, "field 'joins'") for each in fields.as_list(fields.get(row, "joins"), "field 'joins'")
        ),
        _number(fields.get(row, "reward"), "field 'reward'"),
        _log_probability(fields.get(row, "log_probability")),
        _times(row),
        fields.flag(row, "greedy"),
    )


def _times(row: Row) -> int:
    times = fields.get(row, "times")
    if type(times) is not int or times < 0:
        raise DataError(f"field 'times' is {json.dumps(times)[:40]}, not a whole number from 0")
    return times


def _log_probability(value: object) -> float:
    number = _number(value, "field 'log_probability'")
    if number > 0:
        raise DataError(f"field 'log_probability' is {number}, not 0 or less")
    return number


def _number(value: object, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DataError(f"{what} is {json.dumps(value)[:40]}, not a number")
    return float(value)
