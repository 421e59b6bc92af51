"""Typed access to the fields of one row of a data-set file.  Standard library only.

Errors name the missing or mistyped field; `datamodules.formats.reading` adds the file and the line.  Alternative names
are written `"_id|id"`: `_id` if the row has it, else `id`.  A null field counts as absent, since Parquet and Hugging
Face copies fill absent fields with null.  `datamodules.formats.cells` says what is null in a table.
"""

import hashlib
import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from common.errors import DataError
from common.records import Passage, clean, nfkc
from datamodules.formats.cells import WORDS_FOR_NONE, TableCell, is_list, is_null, list_of, structure, whole
from datamodules.formats.row_counts import LEFT_OUT, RowKind

Row = Mapping[str, object]
_noted: ContextVar[list[RowKind] | None] = ContextVar("noted", default=None)


class EmptyFieldError(DataError):
    """A field that a row needs is there, but null or empty: such a row is left out and counted."""


_JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


@contextmanager
def noting() -> Iterator[list[RowKind]]:
    """Records what the functions below find in a row, such as `an item of field 'answers' that is null`, left out."""
    found: list[RowKind] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def note(what: str, outcome: str = LEFT_OUT) -> None:
    """Record a part of the row that is converted."""
    if (noted := _noted.get()) is not None:
        noted.append(RowKind(what, outcome))


def is_there(value: object, what: str) -> bool:
    """Whether `value` is not null and no empty text; else it is noted as left out, by `what`."""
    if not is_null(value) and not (isinstance(value, str) and not clean(value)):
        return True
    note(f"{what} that is {'null' if is_null(value) else 'empty'}")
    return False


def key(row: Row, field: str, number: bool = False) -> str | None:
    """The first alternative of the field's name that the row has; None if it has none.

    Args:
        row: The row.
        field: Its names.
        number: Whether it holds ids or numbers, as of `cells.is_null`.
    """
    return next((name for name in field.split("|") if not is_null(row.get(name), number)), None)


def plain(row: Row) -> Row:
    """The row with plain names; of several that are one then, the first that is not null."""
    named: dict[str, object] = {}
    for name, value in row.items():
        if is_null(named.get(name := plain_name(name))):
            named[name] = value
    return named


def plain_name(name: str) -> str:
    """A field's name as the formats of this project have it: small letters, one underscore for blanks and hyphens."""
    return "_".join(name.casefold().replace("-", " ").split())


def has(row: Row, field: str) -> bool:
    """Whether the row has the field, perhaps null."""
    return any(name in row for name in field.split("|"))


def quoted(field: str) -> str:
    """A field's name for error messages: 'question', or '_id' or 'id'."""
    return " or ".join(f"'{name}'" for name in field.split("|"))


def json_name(value: object) -> str:
    """The JSON type of a value, for error messages."""
    return _JSON_NAMES.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def get(row: Row, field: str) -> object:
    """The value of a field.

    Raises:
        DataError: If it is absent; `EmptyFieldError` if it is null.
    """
    name = key(row, field)
    if name is None:
        if has(row, field):
            raise EmptyFieldError(f"field {quoted(field)} is null")
        raise DataError(f"field {quoted(field)} is missing")
    return row[name]


def as_text(value: object, what: str) -> str:
    """`value` if it is a string that can be encoded as UTF-8.

    Raises:
        DataError: If it is not; the message names it by `what`.
    """
    if not isinstance(value, str):
        raise DataError(f"{what} is {json_name(value)}, not a string")
    if isinstance(value, TableCell):
        if value.strip() in WORDS_FOR_NONE:
            note(f"{what} that is {value.strip()!r}", "read as this text")
        value = str(value)
    try:
        value.encode()
    except UnicodeEncodeError as error:  # "\ud800" is valid JSON, but not a character
        raise DataError(f"{what} contains an unpaired surrogate ({value[error.start]!a})") from error
    return value


def as_id(value: object, what: str) -> str:
    """`value`, an id, as a string: 7, 7.0 and "7" are the same id.

    Raises:
        DataError: If it is neither a string nor a whole number (7.5 and true are none); `EmptyFieldError` if it is
            empty; the message names it by `what`.
    """
    if isinstance(value, str):
        if is_null(value, number=True) or not clean(as_text(value, what)):
            raise EmptyFieldError(f"{what} is empty")
        return str(value)
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        shown = f"the number {value}" if isinstance(value, float) else json_name(value)
        raise DataError(f"{what} is {shown}, not a string or an integer")
    return str(int(value))


def as_list(value: object, what: str) -> list:
    """`value` if it is a list, or a text that is one.  Raises DataError, naming it by `what`, if it is not."""
    if not isinstance(value := structure(value, what), list):
        raise DataError(f"{what} is {json_name(value)}, not a list")
    return value


def as_object(value: object, what: str) -> dict:
    """`value` if it is an object, or a text that is one.  Raises DataError, naming it by `what`, if it is not."""
    if not isinstance(value := structure(value, what), dict):
        raise DataError(f"{what} is {json_name(value)}, not an object")
    return value


def text(row: Row, field: str) -> str:
    """A string field.  Raises DataError if it is absent or not a string."""
    return as_text(get(row, field), f"field {quoted(field)}")


def filled_text(row: Row, field: str) -> str:
    """A non-empty string field, cleaned.  Raises DataError if it is absent, empty or not a string."""
    cleaned = clean(text(row, field))
    if not cleaned:
        raise EmptyFieldError(f"field {quoted(field)} is empty")
    return cleaned


def text_or_empty(row: Row, field: str) -> str:
    """A string field, "" if it is null.  Raises DataError if it is absent or not a string."""
    return "" if has(row, field) and key(row, field) is None else text(row, field)


def optional_text(row: Row, field: str) -> str:
    """A string field; "" if absent.  Raises DataError if it has another type."""
    return "" if key(row, field) is None else text(row, field)


def optional_list(row: Row, field: str) -> list:
    """A list field; [] if absent.  Raises DataError if it has another type."""
    name = key(row, field)
    return [] if name is None else as_list(row[name], f"field {quoted(field)}")


def optional_texts(row: Row, field: str) -> list[str]:
    """A field that holds a list of strings, without null and empty ones; [] if absent.

    Raises DataError if it has another type.
    """
    return [as_text(item, what) for item, what in _items(optional_list(row, field), f"field {quoted(field)}")]


def optional_ids(row: Row, field: str) -> list[str]:
    """A field that holds a list of ids, see `as_id`, without null and empty ones; [] if absent.

    Raises DataError if it has another type.
    """
    return [as_id(item, what) for item, what in _items(optional_list(row, field), f"field {quoted(field)}")]


def optional_objects(row: Row, field: str) -> list[dict]:
    """A field that holds a list of objects, without those that are null; [] if absent.

    Raises DataError if it has another type.
    """
    return [as_object(item, what) for item, what in _items(optional_list(row, field), f"field {quoted(field)}")]


def records(value: object, what: str) -> list[dict]:
    """A list of objects, or an object of lists of one length, as Hugging Face copies have it.

    Raises:
        DataError: If it is neither; the message names it by `what`.
    """
    if not isinstance(value := structure(value, what), dict):
        return [as_object(item, name) for item, name in _items(as_list(value, what), what)]
    columns = {name: as_list(column, f"'{name}' of {what}") for name, column in value.items()}
    if len(set(map(len, columns.values()))) > 1:
        raise DataError(f"{what} has " + ", ".join(f"{len(column)} '{name}'" for name, column in columns.items()))
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _items(values: list, what: str) -> Iterator[tuple[object, str]]:
    """The items of a list with their names for error messages, without those that are null or an empty text."""
    for number, item in enumerate(values, 1):
        if is_there(item, f"an item of {what}"):
            yield item, f"item {number} of {what}"


def listed(row: Row, field: str, parted: bool = True, number: bool = False) -> list[object]:
    """A list field that may be a single value, without null and empty items; [] if absent.

    In a cell of a table a list is one as JSON, Python, pandas or numpy write it.

    Args:
        row: The row.
        field: Its name.
        parted: Whether | parts the values of a cell.
        number: Whether it holds ids or numbers, as of `key`.

    Raises:
        DataError: If a cell begins and ends as a list and is none.
    """
    name = key(row, field, number)
    value: object = [] if name is None else row[name]
    if isinstance(value, TableCell):
        if is_list(value):
            value = list_of(value, f"field '{name}'")
        elif parted and "|" in value:
            value = [TableCell(part.strip()) for part in value.split("|")]
    return [item for item, _ in _items(value if isinstance(value, list) else [value], f"field '{name}'")]


def as_text_of(value: object, what: str) -> str:
    """`value`, a text or a number, as text.  Raises DataError, naming it by `what`, if it is neither."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else as_text(value, what)


def answers_of(values: Iterable[object], what: str) -> list[str]:
    """Answers that are texts or numbers; one that a table or a column with missing values has as 1937.0 is 1937, too.

    Raises:
        DataError: As `as_text_of`.
    """
    found: list[str] = []
    for value in values:
        text = as_text_of(value, what)
        found += [text, whole(text)] if isinstance(value, TableCell | float) else [text]
    return found


_GRADES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def grade(row: Row, field: str) -> float | None:
    """A label: a number, true or false, yes or no; None if absent.  Raises DataError if it is nothing of these."""
    name = key(row, field, number=True)
    value = None if name is None else row[name]
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and (known := _GRADES.get(value.strip().casefold())) is not None:
        return known
    return optional_number(row, field)


def flag(row: Row, field: str) -> bool:
    """A Boolean field; False if absent.  Raises DataError if it has another type."""
    name = key(row, field, number=True)
    value = None if name is None else row[name]
    if value not in (None, True, False):  # 1 and 0 are accepted: some exports write them
        raise DataError(f"field {quoted(field)} is {json_name(value)}, not true or false")
    return bool(value)


def optional_number(row: Row, field: str) -> float | None:
    """A field that holds a number, or a number as a string; None if absent.

    Raises DataError if it is not finite or no number.
    """
    name = key(row, field, number=True)
    if name is None:
        return None
    value, number = row[name], math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):  # text, or an integer beyond float's range
            number = math.nan
    if not math.isfinite(number):
        shown = json.dumps(value)[:40] if isinstance(value, str | int | float) else json_name(value)
        raise DataError(f"field {quoted(field)} is {shown}, not a finite number")
    return number


def identity(row: Row, field: str) -> str:
    """An id field, cleaned, see `as_id`.  Raises DataError if it is absent, empty or has another type."""
    return clean(as_id(get(row, field), f"field {quoted(field)}"))


def id_or_hash(row: Row, field: str, question: str) -> str:
    """An id field; if absent or empty, 16 hex digits of the question's SHA-256, so that equal questions have equal ids
    in all files."""
    if key(row, field, number=True) is not None and is_there(get(row, field), f"a field {quoted(field)}"):
        return identity(row, field)
    return hashlib.sha256(nfkc(question).encode()).hexdigest()[:16]


def corpus_id(row: Row, field: str) -> tuple[str, str | None]:
    """A passage's own id in its corpus, unchanged, and the name of its field.

    ("", None) where it is absent or empty.

    Raises:
        DataError: If it is neither a string nor an integer.
    """
    name = key(row, field, number=True)
    if name is None or not is_there(row[name], f"a field '{name}'"):
        return "", name
    return as_id(row[name], f"field '{name}'"), name


def metadata(row: Row, used: Container[str | None]) -> dict[str, object] | None:
    """The row's other fields, unchanged; those that are null or empty are omitted; None if there are none.

    Values that JSON cannot express (dates and numbers of Parquet files, NaN) become strings.

    Raises:
        DataError: If a string cannot be encoded as UTF-8.
    """
    others = ((name, value) for name, value in row.items() if name not in used)
    found = {name: value for name, value in others if not is_null(value) and value not in ("", [], {})}
    if not found:
        return None
    text = json.dumps(found, ensure_ascii=False, default=str)
    as_text(text, "a field of the row")
    return json.loads(text, parse_constant=str)


def answers(texts: Iterable[str]) -> tuple[str, ...]:
    """Accepted answers: cleaned, without empty ones and those that are the same in NFKC, in order."""
    distinct: dict[str, str] = {}
    for text in map(clean, texts):
        distinct.setdefault(nfkc(text), text)
    return tuple(filter(None, distinct.values()))


def distinct_passages(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages in order, without duplicates: 2Wiki repeats some paragraphs within a question."""
    return tuple({passage.id: passage for passage in passages}.values())


def distinct_scores(passages: Sequence[Passage], scores: Sequence[float | None]) -> tuple[float | None, ...]:
    """The scores of `distinct_passages(passages)`: of a repeated passage the best one.

    Empty if no passage has a score.
    """
    best: dict[str, float | None] = dict.fromkeys(passage.id for passage in passages)
    for passage, score in zip(passages, scores, strict=True):
        known = best[passage.id]
        if score is not None and (known is None or score > known):
            best[passage.id] = score
    return tuple(best.values()) if any(score is not None for score in best.values()) else ()
