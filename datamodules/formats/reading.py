"""Reads questions and passages from official data-set files.  Standard library only.

A layout is a module of `datamodules.formats.layouts`, found by its name.  It defines

    REQUIRED_FIELDS    fields of every row ("_id|id": one of them)
    CONSISTENT_FIELDS  fields that are present in all rows or in none (e.g. the answers of a test set), as in the first
    row SIGNATURE_FIELDS   fields by which a row of this layout is recognized (`datamodules.formats.recognition`)
    question(row) -> Question, or for a corpus passage(row) -> Passage; raises DataError naming the wrong field, its
    subclass EmptyFieldError where the field is null or empty
    ROWS_JOIN          optional: rows of one question, such as clicks, are one question (`read_joined_questions`)
    ALWAYS_JOIN        optional: they are, whatever their answers and passages
    ANY_CASE, FIELDS   optional, of this project's own layouts: the case of names does not count; all names
    BY_NAME            optional: a file is of this layout only if it is said
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from types import ModuleType
from typing import TypeVar

from common.errors import DataError, UserError
from common.records import Passage, Question, nfkc
from datamodules.formats import row_fields as fields
from datamodules.formats.conversion import converted
from datamodules.formats.open_data import HUB, rows
from datamodules.formats.recognition import (
    check_layout,
    has_questions,
    layout_module,
    layout_of,
    layouts,
    matched_fields,
    name_of,
    row_of,
)
from datamodules.formats.row_counts import (
    EMPTY_PASSAGE,
    IN_EARLIER_FILE,
    JOINED,
    NOT_READ,
    REPEATED_ID,
    REPEATED_PASSAGE,
    TITLE_ALONE,
    WITHOUT_GOLD,
    RowCounts,
    RowKind,
)
from datamodules.formats.row_fields import EmptyFieldError, Row, has, key, quoted

Record = TypeVar("Record", Question, Passage)


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
    counts = counts or RowCounts()
    return _labelled(_opened(layout, source, limit, counts), counts)


def _opened(layout: str, source: str, limit: int | None, counts: RowCounts) -> Iterator[Question]:
    """As `read_questions`, without counting rows without gold: another row of a question may name it."""
    check_layout(layout, questions=True)
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}: give at least 1, or null for all rows")
    return _read_questions(layout, source, islice(rows(source), limit), counts)


def _read_questions(
    layout: str, source: str, found: Iterator[tuple[str, Row]], counts: RowCounts
) -> Iterator[Question]:
    module = layout_of(layout, source, questions=True)
    yield from _records(module, found, source, module.question, counts)


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
    counts = counts or RowCounts()
    return _labelled(_read_joined(layout, _opened(layout, source, limit, counts), source, limit, counts), counts)


def _read_joined(
    layout: str, questions: Iterator[Question], source: str, limit: int | None, counts: RowCounts
) -> Iterator[Question]:
    module = layout_of(layout, source, questions=True)
    yield from _joined(questions, module, source, limit, counts) if hasattr(module, "ROWS_JOIN") else questions


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
        for question in _records(module, several, source, module.question, RowCounts(), some=False):
            repeated.setdefault(nfkc(question.text), []).append(question)
    return repeated


def _groups(questions: Sequence[Question], always: bool) -> list[list[Question]]:
    """For each question with the same text those that are one with it, itself first; none if an earlier one has it.

    Args:
        questions: With the same text.
        always: Whether those with the same earlier turns are one, whatever their answers.
    """
    turns = [tuple(map(nfkc, each.history)) for each in questions]
    named = {own for own, each in zip(turns, questions, strict=True) if each.gold_corpus_ids}
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
        elif each.gold_corpus_ids or (own in named and not each.passages):  # a row of clicks may have none
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
    union = {
        name: tuple(dict.fromkeys(chain.from_iterable(getattr(part, name) for part in parts)))
        for name in ("answers", "support", "unshipped_support", "gold_segments", "gold_corpus_ids")
    }
    grades: dict[str, float] = {}
    for part in parts:
        for id_, grade in ({id_: 1.0 for id_ in (*part.support, *part.gold_corpus_ids)} | dict(part.grades)).items():
            grades[id_] = max(grade, grades.get(id_, grade))
    graded = any(grade != 1 for grade in grades.values())
    return replace(
        parts[0],
        grades=tuple(grades.items()) if graded else (),
        passages=fields.distinct_passages(passages),
        scores=fields.distinct_scores(passages, scores),
        **union,  # type: ignore[arg-type]  # fields of their own types
    )


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


def _labelled(questions: Iterator[Question], counts: RowCounts) -> Iterator[Question]:
    """The questions; of a file that has labels, those without are counted."""
    labelled, without, first = False, 0, ""
    for question in questions:
        if question.answers or question.withheld or _has_gold_passages(question):
            labelled = True
        else:
            without, first = without + 1, first or counts.place
        if labelled and without and counts.without_gold is not None:
            counts.add(RowKind(WITHOUT_GOLD, counts.without_gold), first, without)
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
    counts = counts or RowCounts()
    if not sources:
        raise UserError("no source of passages is given: give at least one file")
    opened = [(source, rows(source)) for source in sources]
    passages = chain.from_iterable(_passages(layout, source, found, counts) for source, found in opened)
    return _filled(passages if repeated else _distinct(passages, counts), layout, sources)


def _passages(layout: str, source: str, found: Iterator[tuple[str, Row]], counts: RowCounts) -> Iterator[Passage]:
    module = layout_of(layout, source)
    if has_questions(module):
        return _shipped(_records(module, found, source, module.question, counts), counts)
    return _records(module, found, source, module.passage, counts)


def _shipped(questions: Iterator[Question], counts: RowCounts) -> Iterator[Passage]:
    """The passages of questions, which are no rows: that several questions have one is usual, and not counted."""
    for question in questions:
        counts.here = ("", "")
        yield from question.passages


def _distinct(passages: Iterator[Passage], counts: RowCounts) -> Iterator[Passage]:
    seen: set[str] = set()
    for passage in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage
        elif counts.is_reading:
            counts.add(REPEATED_PASSAGE)


def _filled(passages: Iterator[Passage], layout: str, sources: Sequence[str]) -> Iterator[Passage]:
    empty = True
    for passage in passages:
        empty = False
        yield passage
    if empty:
        raise DataError(f"{_list_of(sources)}: {layout} questions without passages: give files that contain passages")


def _records(
    module: ModuleType,
    found: Iterator[tuple[str, Row]],
    source: str,
    convert: Callable[[Row], Record],
    counts: RowCounts,
    some: bool = True,
) -> Iterator[Record]:
    """The records of rows of one source, read lazily; `some` as of `converted`."""
    example: tuple[str, Row] | None = None  # the first row that is read

    def of_layout() -> Iterator[tuple[str, Row]]:
        for number, (place, row) in enumerate(found):
            if not number:
                _check_layout(module, source, row)
                _count_unknown(module, row, f"{source}, {place}", counts)
            yield place, row

    def checked(row: Row) -> Record:
        nonlocal example
        here = counts.here[1], row_of(module, row)
        _check_fields(module, here[1], example or here)
        record = convert(row)
        example = example or here
        return record

    def cure(row: Row, is_first: bool) -> str:
        return _whose(module, row) if is_first else "Correct that row or fetch the file again."

    records = converted(source, of_layout(), checked, cure, counts, some)
    return _filled_ones(_with_nulls_counted(records, module, counts), counts)


def _with_nulls_counted(records: Iterator[Record], module: ModuleType, counts: RowCounts) -> Iterator[Record]:
    """The records; of a field that some rows have, those in which it is null are counted."""
    given: set[str] = set()
    null: dict[str, tuple[str, int]] = {}  # the first place, and how many; of fields that no row had until here
    for record in records:
        for field in module.CONSISTENT_FIELDS:
            if key(counts.row, field) is not None:
                given.add(field)
            elif has(counts.row, field):
                place, count = null.get(field, (counts.place, 0))
                null[field] = place, count + 1
            if field in given and field in null:
                counts.add(RowKind(f"a row whose field {quoted(field)} is null", "read without it"), *null.pop(field))
        yield record


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
    """The advice for a first row that is not of the layout."""
    for name, value in row.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict) and all(key(first, field) is not None for field in module.REQUIRED_FIELDS):
            return f"The rows are in its field {name!r}: give a file of these alone, e.g. by jq '.{name}' FILE."
    return f"Is this a {name_of(module)} file? Known layouts: {_list_of(layouts())}."


def _check_layout(module: ModuleType, source: str, row: Row) -> None:
    """Raise DataError if the row has the signature fields of another layout, and not or fewer of this one.

    The questions of this project have few fields, which rows of others may have, too: only its own layouts are told
    from each other.
    """
    own = matched_fields(module, row)
    matched = {
        name: matched_fields(each, row)
        for name, each in ((name, layout_module(name)) for name in layouts())
        if not hasattr(each, "BY_NAME") and (not hasattr(each, "FIELDS") or hasattr(module, "FIELDS"))
    }
    best = max(matched, key=lambda other: matched[other])
    if own < matched[best]:
        raise DataError(f"{source} looks like {best}: use layout {best} instead of {name_of(module)}.")


def _count_unknown(module: ModuleType, row: Row, place: str, counts: RowCounts) -> None:
    """Count the fields that a layout of questions of this project does not have, such as one with a wrong name."""
    for name in row_of(module, row):
        if name and name not in getattr(module, "FIELDS", row_of(module, row)):
            counts.add(RowKind(f"a field {name!r}, which the layout {name_of(module)} does not have", NOT_READ), place)


def _check_fields(module: ModuleType, row: Row, example: tuple[str, Row]) -> None:
    first_place, first = example
    for field in module.REQUIRED_FIELDS:
        if key(row, field) is None:
            if not has(row, field):
                raise DataError(f"field {quoted(field)} is missing; every {name_of(module)} row has it")
            if has_questions(module):
                raise EmptyFieldError(f"field {quoted(field)} is null")
    for field in module.CONSISTENT_FIELDS:
        if not has(row, field) and key(first, field) is not None:
            raise DataError(f"field {quoted(field)} is missing; {first_place} has it")
        if key(row, field) is not None and not has(first, field):
            raise DataError(f"field {quoted(field)} is present; {first_place} does not have it")


def _list_of(names: Sequence[str]) -> str:
    return ", ".join(names)
