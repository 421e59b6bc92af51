"""Typed access to the fields of one row of a data-set file: what is missing or of the wrong type is named, in words that
`datamodules.reading` completes with the file and the line.  Standard library only.

A field is written with its alternatives: `"_id|id"` is `_id` where the row has it, else `id`.  A field that is null is
absent: Parquet and Hugging Face copies fill with null what a row lacks.
"""

import hashlib
from collections.abc import Iterable, Mapping

from common.errors import DataError
from common.records import Passage, clean

Row = Mapping[str, object]

_JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def key(row: Row, field: str) -> str | None:
    """The first of the field's alternatives that the row has; None where it has none of them."""
    return next((name for name in field.split("|") if row.get(name) is not None), None)


def spell(field: str) -> str:
    """A field as an error line shows it: 'question', or '_id' or 'id'."""
    return " or ".join(f"'{name}'" for name in field.split("|"))


def json_name(value: object) -> str:
    """What a value is, in the words of JSON."""
    return _JSON_NAMES.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def get(row: Row, field: str) -> object:
    """The value of a field.

    Raises:
        DataError: If the row lacks it.
    """
    name = key(row, field)
    if name is None:
        raise DataError(f"field {spell(field)} is missing")
    return row[name]


def as_text(value: object, what: str) -> str:
    """`value` if it is a string that UTF-8 can hold.

    Raises:
        DataError: If it is not; `what` names it.
    """
    if not isinstance(value, str):
        raise DataError(f"{what} is {json_name(value)}, not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # "\ud800" is valid JSON, but no character
        raise DataError(f"{what} holds half a surrogate pair ({value[error.start]!a})") from error
    return value


def as_list(value: object, what: str) -> list:
    """`value` if it is a list.  Raises DataError, naming it by `what`, if it is not."""
    if not isinstance(value, list):
        raise DataError(f"{what} is {json_name(value)}, not a list")
    return value


def as_object(value: object, what: str) -> dict:
    """`value` if it is a JSON object.  Raises DataError, naming it by `what`, if it is not."""
    if not isinstance(value, dict):
        raise DataError(f"{what} is {json_name(value)}, not an object")
    return value


def text(row: Row, field: str) -> str:
    """A string field.  Raises DataError if it is missing or no string."""
    return as_text(get(row, field), f"field {spell(field)}")


def filled_text(row: Row, field: str) -> str:
    """A string field, cleaned, in which something is left.  Raises DataError if not."""
    cleaned = clean(text(row, field))
    if not cleaned:
        raise DataError(f"field {spell(field)} is empty")
    return cleaned


def optional_text(row: Row, field: str) -> str:
    """A string field; "" where it is absent.  Raises DataError if it is anything else."""
    name = key(row, field)
    return "" if name is None else text(row, field)


def optional_list(row: Row, field: str) -> list:
    """A list field; [] where it is absent.  Raises DataError if it is anything else."""
    name = key(row, field)
    return [] if name is None else as_list(row[name], f"field {spell(field)}")


def optional_texts(row: Row, field: str) -> list[str]:
    """A field that holds a list of strings; [] where it is absent.  Raises DataError if it is anything else."""
    return [as_text(item, f"item {i} of field {spell(field)}") for i, item in enumerate(optional_list(row, field), 1)]


def optional_objects(row: Row, field: str) -> list[dict]:
    """A field that holds a list of objects; [] where it is absent.  Raises DataError if it is anything else."""
    return [as_object(item, f"item {i} of field {spell(field)}") for i, item in enumerate(optional_list(row, field), 1)]


def flag(row: Row, field: str) -> bool:
    """A true-or-false field; False where it is absent.  Raises DataError if it is anything else."""
    name = key(row, field)
    value = None if name is None else row[name]
    if value not in (None, True, False):  # 1 and 0 equal True and False and pass: some exports write them
        raise DataError(f"field {spell(field)} is {json_name(value)}, not true or false")
    return bool(value)


def identity(row: Row, field: str) -> str:
    """An id field, a string or an integer.  Raises DataError if it is missing, empty or anything else."""
    value = get(row, field)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else filled_text(row, field)


def identity_or_hash(row: Row, field: str, question: str) -> str:
    """An id field; for files without ids 16 hex digits of the sha256 of the question, so that the same question has the
    same id in every file and no split by id can part its copies."""
    if key(row, field) is not None:
        return identity(row, field)
    return hashlib.sha256(clean(question).encode()).hexdigest()[:16]


def spellings(texts: Iterable[str]) -> tuple[str, ...]:
    """Accepted answers: cleaned, each once, in their order, without empty ones."""
    return tuple(dict.fromkeys(filter(None, map(clean, texts))))


def distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages in their order, each identity once: 2Wiki ships some paragraphs twice in one question."""
    return tuple({passage.id: passage for passage in passages}.values())
