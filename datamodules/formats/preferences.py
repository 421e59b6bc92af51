"""The file format of preferences, written by `infer.py preferences` and read by training.  Standard library only.

OUT/preferences.jsonl, one row per line:

    {"question_id", "question", "history": [turns], "strategy", "question_reward",
     "candidates": [{"rewrite", "reward", "log_probability" or null, "times", "greedy"}]}

OUT/preferences.json, what the rows came from: {"layout": "rewrite_preferences", "text_version", "round", ...}.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.errors import DataError, MissingInputError
from common.files import check_seal, parse_json
from common.preferences import Candidate, RewritePreferences
from common.records import OTHER_TEXTS, TEXT_VERSION, nfkc
from datamodules.formats import row_fields as fields
from datamodules.formats.conversion import converted
from datamodules.formats.open_data import rows
from datamodules.formats.row_counts import REPEATED_REWRITES, RowCounts
from datamodules.formats.row_fields import EmptyFieldError, Row

LAYOUT = "rewrite_preferences"
ROWS, MANIFEST = "preferences.jsonl", "preferences.json"
_CURE = "Run `python infer.py preferences` again."


def preference_lines(preferences: Iterable[RewritePreferences]) -> Iterator[str]:
    """The lines of a file, with their ends."""
    return (json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in preferences)


def read_manifest(folder: str) -> dict[str, Any]:
    """The origin of the preferences in a folder.

    Raises:
        MissingInputError: If the folder does not exist or holds no preferences.
        DataError: If the file is invalid.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise MissingInputError(
            f"{path} does not exist: write it with `python infer.py preferences --out {folder} ...`."
        )
    check_seal(path)
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
        if manifest["layout"] != LAYOUT:
            raise ValueError(f"the layout {manifest['layout']!r} is unknown")
        if type(manifest["round"]) is not int or manifest["round"] < 1:
            raise ValueError(f"round is {manifest['round']!r}, not a whole number from 1")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a file of this command ({error}). {_CURE}") from error
    if manifest.get("text_version") != TEXT_VERSION:
        raise DataError(f"{path}: {OTHER_TEXTS} {_CURE}")
    return manifest


def read_rewrite_preferences(folder: str, counts: RowCounts | None = None) -> list[RewritePreferences]:
    """The rows of a folder, in order; of a question and strategy that it has several times the first one.

    Args:
        folder: Of `infer.py preferences`.
        counts: Counts the rows that are left out.

    Raises:
        MissingInputError: If the folder does not exist or holds no preferences.
        DataError: If the manifest or a row is invalid; names file and line.
    """
    read_manifest(folder)
    path = Path(folder) / ROWS
    if not path.is_file():
        raise MissingInputError(f"{path} does not exist. {_CURE}")
    found: dict[tuple[str, tuple[str, ...], str], RewritePreferences] = {}
    counts = counts or RowCounts()
    for each in converted(str(path), rows(str(path)), rewrite_preferences, _CURE, counts):
        known = nfkc(each.question), tuple(filter(None, map(nfkc, each.history))), each.strategy
        if known in found:
            counts.add(REPEATED_REWRITES)
        else:
            found[known] = each
    return [*found.values()]


def rewrite_preferences(row: Row) -> RewritePreferences:
    """The record of a row.

    Raises:
        DataError: If it is invalid.
    """
    candidates = fields.records(fields.get(row, "candidates"), "field 'candidates'")
    if not candidates:
        raise EmptyFieldError("field 'candidates' is empty")
    return RewritePreferences(
        fields.identity(row, "question_id"),
        fields.filled_text(row, "question"),
        fields.filled_text(row, "strategy"),
        _number(fields.get(row, "question_reward"), "field 'question_reward'"),
        tuple(map(_candidate, candidates)),
        tuple(fields.optional_texts(row, "history")),
    )


def _candidate(row: Row) -> Candidate:
    logp, times = row.get("log_probability"), fields.get(row, "times")
    if type(times) is not int or times < 0:
        raise DataError(f"field 'times' is {json.dumps(times)[:40]}, not a whole number from 0")
    return Candidate(
        fields.filled_text(row, "rewrite"),
        _number(fields.get(row, "reward"), "field 'reward'"),
        None if logp is None else _log_probability(logp),
        times,
        fields.flag(row, "greedy"),
    )


def _log_probability(value: object) -> float:
    number = _number(value, "field 'log_probability'")
    if number > 0:
        raise DataError(f"field 'log_probability' is {number}, not 0 or less")
    return number


def _number(value: object, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DataError(f"{what} is {json.dumps(value)[:40]}, not a number")
    return float(value)
