"""What a value is: a cell of a table, in which lists and missing values are text, or a value of JSON or Parquet.

Standard library only.
"""

import ast
import json
import math
import re
from contextlib import suppress

from common.errors import DataError

MISSING = frozenset(("nan", "NaN", "NaT", "<NA>"))  # as pandas and numpy write it
NO_NUMBER = MISSING | {"None"}  # the same where ids and numbers stand; None is a word elsewhere
WORDS_FOR_NONE = frozenset(("None", "NA", "N/A"))  # texts, which often stand for a missing value
_LITERALS = dict.fromkeys(("nan", "NaN", "NaT", "NA", "null"), "None") | {"true": "True", "false": "False"}
_LITERALS["<NA>"] = "None"
_TEXT = r"""(?:'[^']*'|"[^"]*")"""
_LIST = re.compile(rf"\[.*\]|(?:\w+\.)?array\(.*\)|\({_TEXT},(?:\s*{_TEXT},?)*\)", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<unread>,\s*dtype=[^()\[\]]*|(?:\w+\.)*[a-zA-Z_]\w*(?=\())|\.\.\."  # array(['a'], dtype=object), np.int64(3)
    r"""|(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|<NA>"""
    r"|(?:(?<![\w.])[-+])?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[a-zA-Z_]\w*)|\S",
    re.DOTALL,
)


class TableCell(str):
    """A filled cell of a table: one text or number, several values, or a word for a missing value."""

    __slots__ = ()


def is_null(value: object, number: bool = False) -> bool:
    """Whether a value is missing.

    Args:
        value: Of a row.
        number: Whether an id or a number is expected.
    """
    return value is None or (isinstance(value, TableCell) and value.strip() in (NO_NUMBER if number else MISSING))


def whole(number: str) -> str:
    """An id or an answer that is a whole number as tables with missing values write it, without `.0`: 3.0 is 3."""
    digits, point, zeros = number.partition(".")
    is_whole = point and zeros and not zeros.strip("0") and digits.removeprefix("-").isdecimal() and digits.isascii()
    return digits if is_whole else number


def without_nan(value: object) -> object:
    """A value of Parquet with null in the place of NaN, and Python's values in that of numpy's."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, dict):
        return {name: without_nan(item) for name, item in value.items()}
    return without_nan(value.tolist()) if hasattr(value, "tolist") else value


def structure(value: object, what: str) -> object:
    """The list or the object of a text that is one as JSON, or in a table as Python and numpy, write it; else `value`.

    Raises:
        DataError: As `list_of`.
    """
    if not isinstance(value, str) or not (is_list(value) or (value.strip()[:1], value.strip()[-1:]) == ("{", "}")):
        return value
    if isinstance(value, TableCell):
        return list_of(value, what)
    with suppress(ValueError, RecursionError):
        return json.loads(value, parse_constant=nan_is_null)
    return value


def is_list(cell: str) -> bool:
    """Whether a text begins and ends as a list or an array does, or is a tuple of texts."""
    return _LIST.fullmatch(cell.strip()) is not None


def list_of(text: str, what: str) -> object:
    """The list of a cell as JSON, Python, pandas or numpy write it: `["a", "b"]`, `['a', nan]`, `['a' 'b']`, `[3 4]`.

    Raises:
        DataError: If it is none, or values were left out of it, as `...` says; names it by `what`.
    """
    with suppress(ValueError, RecursionError):
        return json.loads(text, parse_constant=nan_is_null)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        found = ast.literal_eval(_as_python(text.strip(), what))
        return [*found] if isinstance(found, tuple) else found
    raise DataError(f"{what} is {text[:40]!r}, which begins like a list and is none")


def nan_is_null(name: str) -> float | None:
    """The value of a constant that JSON does not have, for `json.loads`: NaN is null."""
    return None if name == "NaN" else float(name)


def _as_python(text: str, what: str) -> str:
    """A printed list or array as an expression of Python: commas between values that blanks part, None for nan.

    Python itself joins texts that follow one another: ['a' 'b'] would be ['ab'].
    """
    parts, ends = list[str](), False  # whether a value ends here
    for found in _TOKEN.finditer(text):
        token, value = found[0], found["value"]
        if token == "...":
            raise DataError(f"{what} is {text[:40]!r}, of which '...' stands for values that were not written")
        if not found["unread"]:
            parts += [","] * (ends and (bool(value) or token in "([{"))
            parts.append(_LITERALS.get(token, token))
            ends = bool(value) or token in ")]}"
    return " ".join(parts)
