"""Reads questions and passages from official data-set files.  Standard library only.

A layout is a module of `datamodules.formats.layouts`, found by its name.  It defines

    REQUIRED_FIELDS    fields of every row ("_id|id": one of them)
    CONSISTENT_FIELDS  fields that are present in all rows or in none (e.g. the answers of a test set), as in the first
    row SIGNATURE_FIELDS   fields by which a row of this layout is recognized
    question(row) -> Question, or for a corpus passage(row) -> Passage; raises DataError naming the wrong field
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import TypeVar

from common.errors import DataError, UserError
from common.records import Passage, Question
from datamodules.formats import layouts as layout_modules
from datamodules.formats.open_data import HUB, rows
from datamodules.formats.row_fields import Row, key, quoted

Record = TypeVar("Record", Question, Passage)


def layouts() -> list[str]:
    """Names of all layouts, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(layout_modules.__path__))


def read_questions(layout: str, source: str, limit: int | None = None) -> Iterator[Question]:
    """The questions of a file or data set, in file order.

    Args:
        layout: One of `question_layouts()`.
        source: A file, `FILE:SPLIT`, or `hf:<id or local data-set folder>[:<config>]:<split>`.
        limit: Maximum number of questions; all by default.

    Raises:
        UserError: Immediately, if the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: Immediately, if the file does not exist.
        DataError: While reading, if the file is truncated or corrupt, or a row does not match the layout; names the
            file, the line and the cause.
    """
    module = _layout(layout)
    if not _has_questions(module):
        raise UserError(
            f"layout {layout!r} is a corpus and has no questions: use one of {_list_of(question_layouts())}"
        )
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}: give at least 1, or null for all rows")
    return islice(_records(module, source, module.question), limit)


def read_distinct_questions(layout: str, sources: Sequence[str]) -> Iterator[Question]:
    """The questions of several files, in their order.

    Of a question that an earlier file has, by its id, only the first.

    Within a file all questions count: MuSiQue-Full has an id twice, for an answerable and an unanswerable question.

    Raises:
        As `read_questions`.
    """
    return _new_ones([read_questions(layout, source) for source in sources])


def _new_ones(files: Sequence[Iterator[Question]]) -> Iterator[Question]:
    earlier: set[str] = set()
    for questions in files:
        own: set[str] = set()
        for question in questions:
            own.add(question.id)
            if question.id not in earlier:
                yield question
        earlier |= own


def check_questions(layout: str, sources: Sequence[str], limit: int | None = None) -> None:
    """Check layout, limit and the first row of every file; of a Hugging Face data set only the form of its name.

    Raises:
        UserError: If the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: If a file does not exist.
        DataError: If a file's first row does not match the layout, or a file is empty.
    """
    for source in sources:
        questions = read_questions(layout, source, limit)
        if not source.startswith(HUB):
            next(questions)


def read_passages(layout: str, sources: Sequence[str], repeated: bool = False) -> Iterator[Passage]:
    """The distinct passages of a corpus, or of the questions of a data set, from all sources, in file order.

    Args:
        layout: One of `layouts()`, the same for all sources.
        sources: Files or data sets, at least one.
        repeated: Whether passages with the title and text of an earlier one are yielded too, for a caller that drops
            them.

    Raises:
        UserError: Immediately, if the layout is unknown or no source is given.
        MissingInputError: Immediately, if a file does not exist.
        DataError: As `read_questions`, and if the questions have no passages.
    """
    module = _layout(layout)
    if not sources:
        raise UserError("no source of passages is given: give at least one file")
    if _has_questions(module):
        questions = [_records(module, source, module.question) for source in sources]
        found = (p for each in questions for question in each for p in question.passages)
    else:
        passages = [_records(module, source, module.passage) for source in sources]
        found = (p for each in passages for p in each)
    return _filled(found if repeated else _distinct(found), layout, sources)


def question_layouts() -> list[str]:
    """Names of the layouts that have questions, sorted."""
    return [name for name in layouts() if _has_questions(_layout(name))]


def _distinct(passages: Iterator[Passage]) -> Iterator[Passage]:
    seen: set[str] = set()
    for passage in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage


def _filled(passages: Iterator[Passage], layout: str, sources: Sequence[str]) -> Iterator[Passage]:
    empty = True
    for passage in passages:
        empty = False
        yield passage
    if empty:
        raise DataError(f"{_list_of(sources)}: {layout} questions without passages: give files that contain passages")


def _records(module: ModuleType, source: str, convert: Callable[[Row], Record]) -> Iterator[Record]:
    """The records of one source.  Opens the source immediately and reads it lazily."""
    return _converted(module, source, rows(source), convert)


def _converted(
    module: ModuleType, source: str, places_and_rows: Iterator[tuple[str, dict]], convert: Callable[[Row], Record]
) -> Iterator[Record]:
    first: tuple[str, Row] | None = None
    for place, row in places_and_rows:
        if first is None:
            _check_layout(module, source, row)
            first = place, row
        try:
            _check_fields(module, row, *first)
            record = convert(row)
        except DataError as error:
            cure = "Correct that row or fetch the file again."
            if place == first[0]:
                cure = _whose(module, row)
            raise DataError(f"{source}, {place}: {error}. {cure}") from error
        yield record


def _whose(module: ModuleType, row: Row) -> str:
    """What to do about a first row that is not of the layout."""
    for name, value in row.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict) and all(key(first, field) is not None for field in module.REQUIRED_FIELDS):
            return f"The rows are in its field {name!r}: give a file of these alone, e.g. by jq '.{name}' FILE."
    return f"Is this a {_name(module)} file? Known layouts: {_list_of(layouts())}."


def _check_layout(module: ModuleType, source: str, row: Row) -> None:
    """Raise DataError if the row has the signature fields of another layout, and not or fewer of this one."""
    signatures = {name: _layout(name).SIGNATURE_FIELDS for name in layouts()}
    matched = {name: len(fields) for name, fields in signatures.items() if all(key(row, field) for field in fields)}
    name = _name(module)
    best = max(matched, key=lambda other: matched[other], default=name)
    if matched.get(name, 0) < matched.get(best, 0):
        raise DataError(f"{source} looks like {best}: use layout {best} instead of {name}.")


def _check_fields(module: ModuleType, row: Row, first_place: str, first: Row) -> None:
    for field in module.REQUIRED_FIELDS:
        if key(row, field) is None:
            raise DataError(f"field {quoted(field)} is missing; every {_name(module)} row has it")
    for field in module.CONSISTENT_FIELDS:
        here, there = key(row, field) is not None, key(first, field) is not None
        if there and not here:
            raise DataError(f"field {quoted(field)} is missing; {first_place} has it")
        if here and not there:
            raise DataError(f"field {quoted(field)} is present; {first_place} does not have it")


def _layout(name: str) -> ModuleType:
    known = layouts()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UserError(f"unknown layout {name!r}: use one of {_list_of(known)}.{hint}")
    return importlib.import_module(f"{layout_modules.__name__}.{name}")


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _has_questions(module: ModuleType) -> bool:
    return hasattr(module, "question")


def _list_of(names: Sequence[str]) -> str:
    return ", ".join(names)
