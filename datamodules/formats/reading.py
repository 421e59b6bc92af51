"""Reads questions and passages from official data-set files.  Standard library only.

A layout is a module of `datamodules.formats.layouts`, found by its name.  It defines

    REQUIRED_FIELDS    fields of every row ("_id|id": one of them)
    CONSISTENT_FIELDS  fields that are present in all rows or in none (e.g. the answers of a test set), as in the first
    row SIGNATURE_FIELDS   fields by which a row of this layout is recognized
    question(row) -> Question, or for a corpus passage(row) -> Passage; raises DataError naming the wrong field, its
    subclass EmptyFieldError where the field is null or empty
    ROWS_JOIN          optional: rows of one question, such as clicks, are one question (`read_joined_questions`)
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from types import ModuleType
from typing import TypeVar

from common.errors import DataError, UserError
from common.records import Passage, Question, nfkc
from datamodules.formats import layouts as layout_modules
from datamodules.formats import row_fields as fields
from datamodules.formats.open_data import HUB, rows
from datamodules.formats.row_counts import (
    EMPTY_PASSAGE,
    IN_EARLIER_FILE,
    JOINED,
    LEFT_OUT,
    NO_GOLD,
    TITLE_ALONE,
    RowCounts,
    RowKind,
)
from datamodules.formats.row_fields import EmptyFieldError, Row, has, key, quoted

Record = TypeVar("Record", Question, Passage)


def layouts() -> list[str]:
    """Names of all layouts, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(layout_modules.__path__))


def read_questions(
    layout: str, source: str, limit: int | None = None, counts: RowCounts | None = None
) -> Iterator[Question]:
    """The questions of a file or data set, a row each, in file order.

    Rows without a question and empty passages are left out.

    Args:
        layout: One of `question_layouts()`.
        source: A file, `FILE:SPLIT`, or `hf:<id or local data-set folder>[:<config>]:<split>`.
        limit: Maximum number of questions; all by default.
        counts: Counts what is unusual.

    Raises:
        UserError: Immediately, if the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: Immediately, if the file does not exist.
        DataError: While reading, if the file is truncated or corrupt, a row does not match the layout, or none is left;
            names the file, the line and the cause.
    """
    module = _layout(layout)
    if not _has_questions(module):
        raise UserError(
            f"layout {layout!r} is a corpus and has no questions: use one of {_list_of(question_layouts())}"
        )
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}: give at least 1, or null for all rows")
    counts = counts or RowCounts()
    return _labelled(islice(_records(module, source, module.question, counts), limit), counts)


def read_joined_questions(
    layout: str, source: str, limit: int | None = None, counts: RowCounts | None = None
) -> Iterator[Question]:
    """The questions of a file, of which several rows may be one: those with the same text and earlier turns.

    In layouts with `ROWS_JOIN`, rows of one question become one question at the first one's place, with its id, the
    gold passages and the answers of all: a log of clicks has a row a click.  These are rows that name gold passages by
    a corpus's ids, and rows with gold passages whose answers do not differ.  Such a file is read twice.

    Args:
        layout: As of `read_questions`, also the others.
        source: The file.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts what is unusual, and the rows that are joined.

    Raises:
        As `read_questions`.
    """
    counts = counts or RowCounts()
    questions = read_questions(layout, source, limit, counts)
    if not hasattr(_layout(layout), "ROWS_JOIN"):
        return questions
    return _joined(questions, rows(source), _layout(layout), limit, counts)


def _joined(
    questions: Iterator[Question],
    again: Iterator[tuple[str, Row]],
    module: ModuleType,
    limit: int | None,
    counts: RowCounts,
) -> Iterator[Question]:
    further = _further_rows(islice(again, limit), module)
    first: dict[str, Question] = {}
    for question in questions:
        text = nfkc(question.text)
        if text not in further:
            yield question
        elif text not in first:
            first[text] = question
            yield _join([question, *(other for other in further[text] if _is_one(question, other))])
        elif _is_one(first[text], question):
            counts.add(JOINED)
        else:
            yield question


def _further_rows(found: Iterator[tuple[str, Row]], module: ModuleType) -> dict[str, list[Question]]:
    """By their text, the questions of rows that are not the first of theirs; only these rows are converted."""
    seen: set[int] = set()  # hashes of texts
    further: dict[str, list[Question]] = {}
    for _, row in found:
        text = row.get("question")
        if not isinstance(text, str) or not (text := nfkc(text)):
            continue
        if hash(text) not in seen:
            seen.add(hash(text))
            continue
        try:
            further.setdefault(text, []).append(module.question(row))
        except DataError:  # said when the row is read
            continue
    return further


def _is_one(question: Question, other: Question) -> bool:
    """Whether two questions with the same text are one."""
    if question.history != other.history:
        return False
    named = [bool(each.gold_corpus_ids) for each in (question, other)]
    if all(named) or (any(named) and not question.passages and not other.passages):  # a row of clicks may have none
        return True
    agree = question.answers == other.answers or not question.answers or not other.answers
    return agree and _has_gold_passages(question) and _has_gold_passages(other)


def _join(parts: Sequence[Question]) -> Question:
    """One question of several: the first, with the passages, gold passages and answers of all."""
    if len(parts) == 1:
        return parts[0]
    passages = [passage for part in parts for passage in part.passages]
    scores = [score for part in parts for score in part.scores or (None,) * len(part.passages)]
    union = {
        name: tuple(dict.fromkeys(chain.from_iterable(getattr(part, name) for part in parts)))
        for name in ("answers", "support", "unshipped_support", "gold_segments", "gold_corpus_ids")
    }
    return replace(
        parts[0],
        passages=fields.distinct_passages(passages),
        scores=fields.distinct_scores(passages, scores),
        **union,  # type: ignore[arg-type]  # fields of their own types
    )


def read_distinct_questions(layout: str, sources: Sequence[str], counts: RowCounts | None = None) -> Iterator[Question]:
    """The questions of several files, in their order, each file as by `read_joined_questions`.

    Of a question that an earlier file has, by its id, only the first.

    Within a file all questions count: MuSiQue-Full has an id twice, for an answerable and an unanswerable question.

    Raises:
        As `read_questions`.
    """
    counts = counts or RowCounts()
    return _new_ones([read_joined_questions(layout, source, counts=counts) for source in sources], counts)


def _new_ones(files: Sequence[Iterator[Question]], counts: RowCounts) -> Iterator[Question]:
    earlier: set[str] = set()
    for questions in files:
        own: set[str] = set()
        for question in questions:
            own.add(question.id)
            if question.id not in earlier:
                yield question
            else:
                counts.add(IN_EARLIER_FILE)
        earlier |= own


def _labelled(questions: Iterator[Question], counts: RowCounts) -> Iterator[Question]:
    """The questions; of a file that has labels, those without are counted."""
    labelled, without, first = False, 0, ""
    for question in questions:
        if question.answers or question.withheld or _has_gold_passages(question):
            labelled = True
        else:
            without, first = without + 1, first or counts.place
        if labelled and without:
            counts.add(NO_GOLD, first, without)
            without = 0
        yield question


def _has_gold_passages(question: Question) -> bool:
    return bool(question.support or question.unshipped_support or question.gold_corpus_ids or question.gold_segments)


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


def read_passages(
    layout: str, sources: Sequence[str], repeated: bool = False, counts: RowCounts | None = None
) -> Iterator[Passage]:
    """The distinct passages of a corpus, or of the questions of a data set, from all sources, in file order.

    Passages without title and text are left out.

    Args:
        layout: One of `layouts()`, the same for all sources.
        sources: Files or data sets, at least one.
        repeated: Whether passages with the title and text of an earlier one are yielded too, for a caller that drops
            them.
        counts: Counts what is unusual.

    Raises:
        UserError: Immediately, if the layout is unknown or no source is given.
        MissingInputError: Immediately, if a file does not exist.
        DataError: As `read_questions`, and if the questions have no passages.
    """
    module, counts = _layout(layout), counts or RowCounts()
    if not sources:
        raise UserError("no source of passages is given: give at least one file")
    if _has_questions(module):
        questions = [_records(module, source, module.question, counts) for source in sources]
        found = (p for each in questions for question in each for p in question.passages)
    else:
        passages = [_records(module, source, module.passage, counts) for source in sources]
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


def _records(module: ModuleType, source: str, convert: Callable[[Row], Record], counts: RowCounts) -> Iterator[Record]:
    """The records of one source.  Opens the source immediately and reads it lazily."""
    return _filled_ones(_converted(module, source, rows(source), convert, counts), counts)


def _converted(
    module: ModuleType,
    source: str,
    places_and_rows: Iterator[tuple[str, dict]],
    convert: Callable[[Row], Record],
    counts: RowCounts,
) -> Iterator[Record]:
    """The records of the rows, but of those that lack what they need: a field that is null or empty."""
    first: tuple[str, Row] | None = None
    left_out = ""
    for place, row in places_and_rows:
        if first is None and not left_out:
            _check_layout(module, source, row)
        counts.here = source, place
        try:
            _check_fields(module, row, first or (place, row), counts)
            record = convert(row)
        except EmptyFieldError as error:
            counts.add(RowKind(f"a row whose {error}", LEFT_OUT))
            left_out = left_out or f"{place}: {error}"
            continue
        except DataError as error:
            cure = _whose(module, row) if first is None else "Correct that row or fetch the file again."
            raise DataError(f"{source}, {place}: {error}. {cure}") from error
        first = first or (place, row)
        yield record
    if first is None and left_out:
        raise DataError(f"{source}: every row is left out, as {left_out}. {_whose(module, {})}")


def _filled_ones(records: Iterator[Record], counts: RowCounts) -> Iterator[Record]:
    """The records without empty passages."""
    for record in records:
        if isinstance(record, Passage):
            if record.text or record.title:
                if not record.text:
                    counts.add(TITLE_ALONE)
                yield record
            else:
                counts.add(EMPTY_PASSAGE)
        elif all(passage.text for passage in record.passages):
            yield record
        else:
            yield _without_empty_passages(record, counts)


def _without_empty_passages(question: Question, counts: RowCounts) -> Question:
    kept = [place for place, passage in enumerate(question.passages) if passage.text or passage.title]
    passages = tuple(question.passages[place] for place in kept)
    for kind, count in (
        (EMPTY_PASSAGE, len(question.passages) - len(kept)),
        (TITLE_ALONE, sum(not passage.text for passage in passages)),
    ):
        if count:
            counts.add(kind, count=count)
    ids = {passage.id for passage in passages}
    return replace(
        question,
        passages=passages,
        scores=tuple(question.scores[place] for place in kept) if question.scores else (),
        support=tuple(id_ for id_ in question.support if id_ in ids),
    )


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


def _check_fields(module: ModuleType, row: Row, example: tuple[str, Row], counts: RowCounts) -> None:
    first_place, first = example
    for field in module.REQUIRED_FIELDS:
        if key(row, field) is None:
            if not has(row, field):
                raise DataError(f"field {quoted(field)} is missing; every {_name(module)} row has it")
            if _has_questions(module):
                raise EmptyFieldError(f"field {quoted(field)} is null")
    for field in module.CONSISTENT_FIELDS:
        if key(row, field) is None and key(first, field) is not None:
            if not has(row, field):
                raise DataError(f"field {quoted(field)} is missing; {first_place} has it")
            counts.add(RowKind(f"a row whose field {quoted(field)} is null", "read without it"))
        if key(row, field) is not None and not has(first, field):
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
