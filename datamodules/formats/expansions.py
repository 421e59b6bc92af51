"""File format of a beam's expansions of training questions, written by `infer.py expand` and read by training.

JSON Lines, one question per line: {"question_id", "passages": [{"title", "text"}, ...], "expansions": [{"chain": [id,
...], "candidates": [id, ...]}, ...]}. The ids are of `passages`; candidates stand best scored first, gold passages
among them: training labels them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import DataError, MissingInputError
from common.files import write_text
from common.progress import FileProgress
from common.records import Passage


@dataclass(frozen=True, slots=True)
class Expansion:
    """A chain that a search has extended, and the passages that it was extended by."""

    chain: tuple[Passage, ...]
    candidates: tuple[Passage, ...]


def is_expansions(path: Path) -> bool:
    """Whether a file is one of expansions, by its first line."""
    try:
        with path.open(encoding="utf-8") as file:
            return json.loads(file.readline()).keys() == {"question_id", "passages", "expansions"}
    except (ValueError, AttributeError):  # not UTF-8, not JSON, or not an object
        return False


def to_row(question_id: str, expansions: Sequence[Expansion]) -> dict[str, Any]:
    """One question's line, JSON types only."""
    passages = {p.id: p for each in expansions for p in (*each.chain, *each.candidates)}
    return {
        "question_id": question_id,
        "passages": [{"title": p.title, "text": p.text} for p in passages.values()],
        "expansions": [
            {"chain": [p.id for p in each.chain], "candidates": [p.id for p in each.candidates]} for each in expansions
        ],
    }


def from_row(row: Mapping[str, Any]) -> list[Expansion]:
    """The expansions of a line.  Raises KeyError or TypeError if it is no such line."""
    passages = {p.id: p for p in (Passage.of(each["title"], each["text"]) for each in row["passages"])}
    return [
        Expansion(*(tuple(passages[id_] for id_ in each[part]) for part in ("chain", "candidates")))
        for each in row["expansions"]
    ]


def write_expansions(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write lines of `to_row` atomically.  Raises as `write_text`."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_expansions(paths: Sequence[str]) -> dict[str, list[Expansion]]:
    """Expansions by question id, from one or several files, such as those of several rounds.

    Raises:
        MissingInputError: If a file does not exist.
        DataError: If a line is invalid; names file and line.
    """
    found: dict[str, list[Expansion]] = {}
    for question_id, expansions in expansion_rows(paths):
        found.setdefault(question_id, []).extend(expansions)
    return found


def expansion_rows(paths: Sequence[str]) -> Iterator[tuple[str, list[Expansion]]]:
    """Question id and expansions of every line of the files, in order; raises as `read_expansions`."""
    for path in paths:
        if not Path(path).is_file():
            raise MissingInputError(f"{path} does not exist: write it with `python infer.py expand --out {path} ...`.")
        with Path(path).open("rb") as file, FileProgress(file):
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    found, question_id = from_row(row), str(row["question_id"])
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(
                        f"{path}, line {number}: invalid row ({error!r}); run `python infer.py expand` again."
                    ) from error
                yield question_id, found
