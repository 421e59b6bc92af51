"""Streaming parser of JSON lists, JSON Lines and JSON objects over several lines.

Yields values one by one with their line numbers.  Files may be larger than memory.  Standard library only.
"""

import codecs
import io
import json
from collections.abc import Iterator

from common.errors import DataError
from datamodules.formats.cells import nan_is_null

CHUNK_BYTES = 1 << 20

_BOM = codecs.BOM_UTF8
_JSON = json.JSONDecoder(parse_constant=nan_is_null)
_BLANKS = frozenset(" \t\r\n\ufeff")  # a byte order mark is within a file if files were joined
_DELIMITERS = _BLANKS | {",", "]"}
_LONGEST_LITERAL = len("-Infinity")


class TruncatedError(Exception):
    """The file ends inside a value or before the list is closed."""


def json_values(file: io.BufferedReader) -> Iterator[tuple[str, object]]:
    """Each value with its position for error messages: "line 3" (JSON Lines), "row 3 (line 5)" (JSON list).

    Objects that follow one another need no line each: those of a pretty printer are read too.

    Args:
        file: UTF-8 encoded; a byte order mark is skipped.

    Raises:
        DataError: If the file is not UTF-8 or not JSON; names the line, the caller adds the file.
        TruncatedError: If the file ends too early.
    """
    if file.peek(len(_BOM)).startswith(_BOM):
        file.read(len(_BOM))
    line = 1
    while (byte := file.peek(1)[:1]).isspace():
        line += file.read(1) == b"\n"
    if byte == b"[":
        yield from _list(_Text(file, line))
    elif byte == b"{":
        yield from _lines(file, line)
    elif byte:
        raise DataError(f"line {line}: neither a JSON list nor JSON Lines: it starts with {byte!r}")


def _lines(file: io.BufferedReader, first: int) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(file, first):
        if line.isspace():
            continue
        try:
            text = line.decode()
            value = _JSON.decode(text)
        except UnicodeDecodeError as error:
            if not line.endswith(b"\n") and error.reason == "unexpected end of data":  # only the last line can be
                raise TruncatedError from error
            raise _not_utf8(number, error) from error
        except json.JSONDecodeError:  # over several lines, several on one, or wrong
            yield from _sequence(_Text(file, number, text))
            return
        except (ValueError, RecursionError) as error:  # a number with thousands of digits, or too deep nesting
            raise _invalid(number, 1, str(error)) from error
        yield f"line {number}", value


def _sequence(text: "_Text") -> Iterator[tuple[str, object]]:
    while not text.at_end():
        line = text.line
        yield f"line {line}", text.value()
        if not text.at_end() and text.peek() == ",":
            raise text.invalid("a comma after a row, which rows have in a list only: [row, row]")


def _list(text: "_Text") -> Iterator[tuple[str, object]]:
    text.step()  # skip the opening bracket
    row = 0
    mark = text.peek()
    while mark != "]":
        row += 1
        line = text.line
        yield f"row {row} (line {line})", text.value()
        mark = text.peek()
        if mark not in (",", "]"):
            raise text.invalid("expecting ',' or ']' after a row")
        if mark == ",":
            text.step()
            text.peek()  # move to the next row, so that `line` is its line
    text.step()
    if not text.at_end():
        raise text.invalid("unexpected text after the end of the list")


class _Text:
    """Incrementally decoded text of a file, with a cursor that tracks line and column."""

    def __init__(self, file: io.BufferedReader, line: int, begun: str = "") -> None:
        self.line = line  # line of the cursor, from 1
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._parse = _JSON.raw_decode
        self._buffer = begun  # text that was read before
        self._cursor = 0
        self._dropped = 0  # removed characters of the buffer's first line

    def at_end(self) -> bool:
        """Skip white space; whether the end of the file is reached."""
        while True:
            rest = len(self._buffer)
            while self._cursor < rest and self._buffer[self._cursor] in _BLANKS:
                self.line += self._buffer[self._cursor] == "\n"
                self._cursor += 1
            if self._cursor < rest:
                return False
            if not self._more():
                return True

    def peek(self) -> str:
        """The next character that is not white space.  Raises TruncatedError at the end of the file."""
        if self.at_end():
            raise TruncatedError
        return self._buffer[self._cursor]

    def step(self) -> None:
        """Skip the character that `peek` returns."""
        self.peek()
        self._cursor += 1

    def value(self) -> object:
        """Parse the JSON value at the cursor and move the cursor past it."""
        while True:
            try:
                value, end = self._parse(self._buffer, self._cursor)
            except json.JSONDecodeError as error:
                if not _incomplete(error):
                    raise self.invalid(error.msg, error.pos) from error
                if not self._more():
                    raise TruncatedError from error
            except (ValueError, RecursionError) as error:  # as in `_lines`
                raise self.invalid(str(error)) from error
            else:
                # Without a following delimiter a number may continue: 1, 1.5, 1.5e7.
                is_whole = isinstance(value, dict | list | str) or self._buffer[end : end + 1] in _DELIMITERS
                if is_whole or not self._more():
                    self.line += self._buffer.count("\n", self._cursor, end)
                    self._cursor = end
                    return value

    def invalid(self, cause: str, position: int | None = None) -> DataError:
        """The error for invalid JSON at a position of the buffer; by default at the cursor."""
        position = self._cursor if position is None else position
        start = self._buffer.rfind("\n", 0, position)
        column = position - start if start >= 0 else self._dropped + position + 1
        return _invalid(self.line + self._buffer.count("\n", self._cursor, position), column, cause)

    def _more(self) -> bool:
        """Drop the text before the cursor and read more (doubling the buffer); False at the end of the file."""
        raw = self._file.read(max(CHUNK_BYTES, len(self._buffer) - self._cursor))
        start = self._buffer.rfind("\n", 0, self._cursor)
        self._dropped = self._cursor - start - 1 if start >= 0 else self._dropped + self._cursor
        self._buffer = self._buffer[self._cursor :]
        self._cursor = 0
        try:
            self._buffer += self._decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            if not raw:
                raise TruncatedError from error
            line = self.line + self._buffer.count("\n") + error.object.count(b"\n", 0, error.start)
            raise _not_utf8(line, error) from error
        return bool(raw)


def _incomplete(error: json.JSONDecodeError) -> bool:
    """Whether the error may be due to truncation: only an error near the end of the text can be."""
    rest = error.doc[error.pos :].strip()
    return error.msg.startswith("Unterminated string") or (len(rest) < _LONGEST_LITERAL and rest[-1:] not in ("}", "]"))


def _invalid(line: int, column: int, cause: str) -> DataError:
    return DataError(f"line {line}, column {column}: invalid JSON: {cause}")


def _not_utf8(line: int, error: UnicodeDecodeError) -> DataError:
    return DataError(f"line {line}: not UTF-8: byte 0x{error.object[error.start]:02x}")
