"""Reads questions and passages from official data-set files.  Standard library only.

A layout is a module of `datamodules.formats.layouts`, found by its name.  It defines

    REQUIRED_FIELDS    fields of every row ("_id|id": one of them)
    question(row) -> Question, or for a corpus passage(row) -> Passage; raises DataError naming the wrong field, its
    subclass EmptyFieldError where the field is null or empty
    SIGNATURE_FIELDS   optional: fields by which a row of this layout is recognized (`datamodules.formats.recognition`);
                       the required ones if it has none
    CONSISTENT_FIELDS  optional: fields that are present in all rows or in none, as in the first row (e.g. the answers
                       of a test set)
    ROWS_JOIN          optional: rows of one question, such as clicks, are one question (`read_joined_questions`)
    ALWAYS_JOIN        optional: they are, whatever their answers and passages
    ANY_CASE, FIELDS   optional, of this project's own layouts: the case of names does not count; all names
    BY_NAME            optional: a file is of this layout only if it is said
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from types import ModuleType
from typing import Any, TypeVar

from common.errors import DataError, UserError
from common.records import Gold, Passage, Question, nfkc
from datamodules.formats import row_fields as fields
from datamodules.formats.conversion import converted
from datamodules.formats.open_data import HUB, rows
from datamodules.formats.recognition import (
    check_first_row,
    check_layout,
    has_questions,
    layout_of,
    layouts,
    name_of,
    row_of,
)
from datamodules.formats.row_counts import (
    EMPTY_PASSAGE,
    IN_EARLIER_FILE,
    JOINED,
    REPEATED_ID,
    REPEATED_PASSAGE,
    TITLE_ALONE,
    WITHOUT_GOLD,
    RowCounts,
    RowKind,
)
from datamodules.formats.row_fields import EmptyFieldError, Row, has, key, quoted

T = TypeVar("T")


def read_questions(
    layout: str, source: str, limit: int | None = None, counts: RowCounts | None = None
) -> Iterator[Question]:
    """The questions of a file or data set, a row each, in file order.

    Rows without a question and empty passages are left out.

    Args:
        layout: One of `question_layouts()`, or `auto`.
        source: A file, `FILE:SPLIT`, or `hf:<id or local data-set folder>[:<config>]:<split>`.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts what is unusual.

    Raises:
        UserError: Immediately, if the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: Immediately, if the file does not exist.
        DataError: While reading, if the file is truncated or corrupt, a row does not match the layout, or none is left;
            names the file, the line and the cause.
    """
    return _opened(layout, source, limit, counts or RowCounts(), joined=False)


def read_joined_questions(
    layout: str, source: str, limit: int | None = None, counts: RowCounts | None = None
) -> Iterator[Question]:
    """The questions of a file, of which several rows may be one: those with the same text and earlier turns.

    In layouts with `ROWS_JOIN`, rows of one question become one question at the first one's place, with its id, the
    gold passages and the answers of all: a log of clicks has a row a click.  These are rows that name gold passages by
    a corpus's ids, and rows with gold passages that have the same answers, or none.  Such a file is read several times.

    Args:
        layout: As of `read_questions`, also the others.
        source: The file.
        limit: Maximum number of rows that are read; all by default.
        counts: Counts what is unusual, and the rows that are joined.

    Raises:
        As `read_questions`.
    """
    return _opened(layout, source, limit, counts or RowCounts(), joined=True)


def _opened(layout: str, source: str, limit: int | None, counts: RowCounts, joined: bool) -> Iterator[Question]:
    """The questions of a file.  What can be refused at once is."""
    check_layout(layout, questions=True)
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}: give at least 1, or null for all rows")
    return _questions(layout, source, islice(rows(source), limit), limit, counts, joined)


def _questions(
    layout: str, source: str, found: Iterator[tuple[str, Row]], limit: int | None, counts: RowCounts, joined: bool
) -> Iterator[Question]:
    """The questions of rows; of a file that has labels, those without are counted."""
    module = layout_of(layout, source, questions=True)
    questions = _records(module, found, source, counts)
    if joined and hasattr(module, "ROWS_JOIN"):
        questions = _joined(questions, module, source, limit, counts)
    labelled, without, first = False, 0, ""
    for question in questions:
        if question.answers or question.source.withheld or _has_gold_passages(question):
            labelled = True
        else:
            without, first = without + 1, first or counts.place
        if labelled and without and counts.without_gold is not None:
            counts.add(RowKind(WITHOUT_GOLD, counts.without_gold), first, without)
            without = 0
        yield question


def _joined(
    questions: Iterator[Question], module: ModuleType, source: str, limit: int | None, counts: RowCounts
) -> Iterator[Question]:
    always, repeated = hasattr(module, "ALWAYS_JOIN"), _repeated(module, source, limit)
    groups = {text: iter(_groups(each, always)) for text, each in repeated.items()}
    for question in questions:
        group = next(groups.get(nfkc(question.text), iter([[question]])))
        if group:
            yield _join(group)
        else:
            counts.add(JOINED)


def _repeated(module: ModuleType, source: str, limit: int | None) -> dict[str, list[Question]]:
    """The questions whose text several rows have, by their text; no other row is converted."""

    def found() -> Iterator[tuple[int, tuple[str, Row]]]:
        """The rows with hashes of their texts."""
        for place, row in islice(rows(source), limit):
            text = row_of(module, row).get(key(row_of(module, row), module.REQUIRED_FIELDS[0]) or "")
            yield hash(nfkc(text)) if isinstance(text, str) else 0, (place, row)

    times = Counter(text for text, _ in found())
    several = (each for text, each in found() if times[text] > 1)
    repeated: dict[str, list[Question]] = {}
    if max(times.values(), default=0) > 1:
        for question in _records(module, several, source, RowCounts(), some=False):
            repeated.setdefault(nfkc(question.text), []).append(question)
    return repeated


def _groups(questions: Sequence[Question], always: bool) -> list[list[Question]]:
    """For each question with the same text those that are one with it, itself first; none if an earlier one has it.

    Args:
        questions: With the same text.
        always: Whether those with the same earlier turns are one, whatever their answers.
    """
    turns = [tuple(map(nfkc, each.history)) for each in questions]
    named = {own for own, each in zip(turns, questions, strict=True) if each.gold.corpus_ids}
    answers = [frozenset(map(nfkc, each.answers)) for each in questions]
    answered: dict[object, frozenset[str]] = {}  # of the first question that has gold passages and answers, by turns
    for own, accepted, each in zip(turns, answers, questions, strict=True):
        if accepted and _has_gold_passages(each):
            answered.setdefault(own, accepted)
    groups: dict[object, list[Question]] = {}
    found: list[list[Question]] = []
    for number, (own, accepted, each) in enumerate(zip(turns, answers, questions, strict=True)):
        of: object = (own, "always") if always else number
        if always:
            pass
        elif each.gold.corpus_ids or (own in named and not each.passages):  # a row of clicks may have none
            of = own, "ids"
        elif _has_gold_passages(each):
            of = own, accepted or answered.get(own)
        found.append([] if of in groups else groups.setdefault(of, []))
        groups[of].append(each)
    return found


def _join(parts: Sequence[Question]) -> Question:
    """One question of several: the first, with the passages, gold passages and answers of all."""
    if len(parts) == 1:
        return parts[0]
    passages = [passage for part in parts for passage in part.passages]
    scores = [score for part in parts for score in part.scores or (None,) * len(part.passages)]
    grades: dict[str, float] = {}
    for part in parts:
        known = {id_: 1.0 for id_ in (*part.support, *part.gold.corpus_ids)} | dict(part.gold.grades)
        for id_, grade in known.items():
            grades[id_] = max(grade, grades.get(id_, grade))
    return replace(
        parts[0],
        answers=_distinct(part.answers for part in parts),
        passages=fields.distinct_passages(passages),
        support=_distinct(part.support for part in parts),
        scores=fields.distinct_scores(passages, scores),
        gold=Gold(
            titles=_distinct(part.gold.titles for part in parts),
            corpus_ids=_distinct(part.gold.corpus_ids for part in parts),
            segments=_distinct(part.gold.segments for part in parts),
            grades=tuple(grades.items()) if any(grade != 1 for grade in grades.values()) else (),
        ),
    )


def _distinct(lists: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def read_distinct_questions(layout: str, sources: Sequence[str], counts: RowCounts | None = None) -> Iterator[Question]:
    """The questions of several files, in their order, each file as by `read_joined_questions`.

    Of a question that an earlier file has, with its id and its text, only the first; another question with its id is
    counted.

    Within a file all questions count: MuSiQue-Full has an id twice, for an answerable and an unanswerable question.

    Raises:
        As `read_questions`.
    """
    counts = counts or RowCounts()
    return _new_ones([read_joined_questions(layout, source, counts=counts) for source in sources], counts)


def _new_ones(files: Sequence[Iterator[Question]], counts: RowCounts) -> Iterator[Question]:
    ids, earlier = set[str](), set[int]()  # hashes of questions
    for questions in files:
        own_ids, own = set[str](), set[int]()
        for question in questions:
            mark = hash((question.id, nfkc(question.text), tuple(map(nfkc, question.history))))
            own_ids.add(question.id)
            own.add(mark)
            if mark in earlier:
                counts.add(IN_EARLIER_FILE)
                continue
            if question.id in ids:
                counts.add(REPEATED_ID)
            yield question
        ids |= own_ids
        earlier |= own


def _has_gold_passages(question: Question) -> bool:
    gold = question.gold
    return bool(question.support or gold.titles or gold.corpus_ids or gold.segments)


def check_questions(layout: str, sources: Sequence[str], limit: int | None = None) -> None:
    """Check layout, limit and the first row of every file; of a Hugging Face data set only the form of its name.

    Raises:
        UserError: If the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: If a file does not exist.
        DataError: If a file's first row does not match the layout, or a file is empty.
    """
    for source in sources:
        read_questions(layout, source, limit)
        if not source.startswith(HUB):
            next(read_questions(layout, source))


def read_passages(
    layout: str,
    sources: Sequence[str],
    repeated: bool = False,
    counts: RowCounts | None = None,
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
    check_layout(layout)
    if not sources:
        raise UserError("no source of passages is given: give at least one file")
    return _passages(layout, [(source, rows(source)) for source in sources], repeated, counts or RowCounts())


def _passages(
    layout: str, opened: Sequence[tuple[str, Iterator[tuple[str, Row]]]], repeated: bool, counts: RowCounts
) -> Iterator[Passage]:
    seen, empty = set[str](), True
    for source, found in opened:
        for passage in _shipped(layout_of(layout, source), found, source, counts):
            empty = False
            if repeated or passage.id not in seen:
                yield passage
            elif counts.is_reading:
                counts.add(REPEATED_PASSAGE)
            if not repeated:
                seen.add(passage.id)
    if empty:
        names = ", ".join(source for source, _ in opened)
        raise DataError(f"{names}: {layout} questions without passages: give files that contain passages")


def _shipped(module: ModuleType, found: Iterator[tuple[str, Row]], source: str, counts: RowCounts) -> Iterator[Passage]:
    """The passages of a corpus; those of questions are no rows: that several questions have one is not counted."""
    if not has_questions(module):
        yield from _records(module, found, source, counts)
        return
    for question in _records(module, found, source, counts):
        counts.here = ("", "")
        yield from question.passages


def _records(
    module: ModuleType, found: Iterator[tuple[str, Row]], source: str, counts: RowCounts, some: bool = True
) -> Iterator[Any]:
    """The questions or passages of rows of one source, read lazily, in one pass; `some` as of `converted`."""
    steps = _Steps(module, source, counts)
    convert = module.question if has_questions(module) else module.passage

    def checked(row: Row) -> Question | Passage:
        steps.check_fields(row)
        record: Question | Passage = convert(row)
        steps.remember(row)
        return record

    for record in converted(source, found, checked, steps.cure, counts, some, steps.look):
        steps.count_nulls()
        filled = _filled_passage(record, counts) if isinstance(record, Passage) else _filled_question(record, counts)
        if filled is not None:
            yield filled


class _Steps:
    """What is done with each row of a file, and what the rows before it say about it."""

    def __init__(self, module: ModuleType, source: str, counts: RowCounts) -> None:
        self._module, self._source, self._counts = module, source, counts
        self._consistent: Sequence[str] = getattr(module, "CONSISTENT_FIELDS", ())
        self._example: tuple[str, Row] | None = None  # place of the first row that was read, and it
        self._given: set[str] = set()  # consistent fields that a row had
        self._null: dict[str, tuple[str, int]] = {}  # the first place, and how many; of fields that no row had

    def look(self, row: Row, place: str) -> None:
        """Check by the first row whether the rows are of the layout.

        Fields are counted that a layout of questions of this project does not have, and those beside a passage.
        """
        check_first_row(self._module, self._source, row)
        row = row_of(self._module, row)
        if hasattr(self._module, "FIELDS"):
            self._counts.add_unknown_fields(row, self._module.FIELDS, name_of(self._module), place)
        elif not has_questions(self._module):
            for name, outcome in self._module.unread_fields(row).items():
                self._counts.add(RowKind(f"a field {name!r}", outcome), place)

    def check_fields(self, row: Row) -> None:
        """Raise DataError if the row lacks a field that all rows have, or that the first one has."""
        row = row_of(self._module, row)
        for field in self._module.REQUIRED_FIELDS:
            if key(row, field) is None:
                if not has(row, field):
                    raise DataError(f"field {quoted(field)} is missing; every {name_of(self._module)} row has it")
                if has_questions(self._module):
                    raise EmptyFieldError(f"field {quoted(field)} is null")
        first_place, first = self._example or ("", row)
        for field in self._consistent:
            if not has(row, field) and key(first, field) is not None:
                raise DataError(f"field {quoted(field)} is missing; {first_place} has it")
            if key(row, field) is not None and not has(first, field):
                raise DataError(f"field {quoted(field)} is present; {first_place} does not have it")

    def remember(self, row: Row) -> None:
        """Remember the first row that is read."""
        self._example = self._example or (self._counts.here[1], row_of(self._module, row))

    def count_nulls(self) -> None:
        """Of a consistent field that some rows have, count those in which it is null."""
        counts, row = self._counts, self._counts.row
        for field in self._consistent:
            if key(row, field) is not None:
                self._given.add(field)
            elif has(row, field):
                place, count = self._null.get(field, (counts.place, 0))
                self._null[field] = place, count + 1
            if field in self._given and field in self._null:
                kind = RowKind(f"a row whose field {quoted(field)} is null", "read without it")
                counts.add(kind, *self._null.pop(field))

    def cure(self, row: Row, is_first: bool) -> str:
        """The advice for a row that is wrong."""
        return _whose(self._module, row) if is_first else "Correct that row or fetch the file again."


def _filled_passage(passage: Passage, counts: RowCounts) -> Passage | None:
    """The passage; None if it is empty."""
    if not passage.text:
        counts.add(TITLE_ALONE if passage.title else EMPTY_PASSAGE)
    return passage if passage.text or passage.title else None


def _filled_question(question: Question, counts: RowCounts) -> Question:
    """The question without empty passages."""
    if all(passage.text for passage in question.passages):
        return question
    kept = [place for place, passage in enumerate(question.passages) if passage.text or passage.title]
    passages = tuple(question.passages[place] for place in kept)
    if empty := len(question.passages) - len(kept):
        counts.add(EMPTY_PASSAGE, count=empty)
    if alone := sum(not passage.text for passage in passages):
        counts.add(TITLE_ALONE, count=alone)
    ids = {passage.id for passage in passages}
    return replace(
        question,
        passages=passages,
        scores=tuple(question.scores[place] for place in kept) if question.scores else (),
        support=tuple(id_ for id_ in question.support if id_ in ids),
    )


def _whose(module: ModuleType, row: Row) -> str:
    """The advice for a first row that is not of the layout."""
    for name, value in row.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict) and all(key(first, field) is not None for field in module.REQUIRED_FIELDS):
            return f"The rows are in its field {name!r}: give a file of these alone, e.g. by jq '.{name}' FILE."
    return f"Is this a {name_of(module)} file? Known layouts: {', '.join(layouts())}."
