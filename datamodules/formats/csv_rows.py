"""Streaming parser of tables with a header (CSV, TSV): yields rows as objects with their line numbers.

Standard library only.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence

from common.errors import DataError
from datamodules.formats.cells import TableCell
from datamodules.formats.json_stream import TruncatedError

LONGEST_CELL = 1 << 27  # characters; a quote that is not closed would else take all the memory
_DELIMITERS = ",\t;|"
_SEEN = 1 << 16  # bytes of a beginning
_CELL_OF_HEADER = re.compile(r"\s*[\w .()/-]{1,60}\s*")
_NAME = re.compile(r"[^\W\d]\w{0,59}")  # of a column, where it is the only one
_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*("?)')  # a cell, whose last quote ends it
_RETURN = re.compile(r"(?<=\r)(?!\n)")  # ends a line of old files
csv.field_size_limit(LONGEST_CELL)


def csv_rows(file: io.BufferedReader) -> Iterator[tuple[str, dict[str, TableCell | None]]]:
    """Each row with its position for error messages ("line 3", where it begins); an empty cell is None.

    Args:
        file: UTF-8 encoded, its cells parted by commas, tabs, semicolons or bars, as its first lines show; quotes are
            doubled in quoted cells, and of a file with tabs part of the text where they do not enclose the cell; a byte
            order mark is skipped. Lines before the header with at most one filled cell,
            such as the warning above a spreadsheet, are skipped, and so are empty lines. Below a name alone, such as
            `text`, every line is a cell.

    Raises:
        DataError: If the file is not UTF-8 or not CSV, it has no header, that names a column twice, or a row has
            another number of cells than the header; names the line, the caller adds the file.
        TruncatedError: If the file ends inside a quoted cell.
    """
    beginning = _beginning(file)
    fewest = 1 if _is_one_column(beginning) else 2
    delimiter = _delimiter(beginning) if fewest > 1 else "\t"
    records = _tab_records if delimiter == "\t" else _csv_records
    header: list[str] = []
    first = 0  # line with text
    for line, cells in records(_text_lines(file), delimiter, header):
        filled = _filled(cells)
        first = first or (line if filled else 0)
        if not header:
            if filled >= fewest and (line == first or all(map(_CELL_OF_HEADER.fullmatch, filter(None, cells)))):
                header += _header(cells, line)
        elif filled:
            if len(cells) != len(header):
                raise DataError(f"line {line}: the row has {len(cells)} cells, the header {len(header)}")
            named = zip(header, cells, strict=True)
            yield f"line {line}", {name: TableCell(cell) if cell else None for name, cell in named if name}
    if first and not header:
        raise DataError(
            f"line {first}: no header: a table begins with the names of its columns, parted by commas, tabs, "
            "semicolons or bars; a name alone, of one column, is one word"
        )


def _csv_records(lines: Iterator[str], delimiter: str, _header: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The records with the numbers of their first lines.  Raises as `csv_rows`."""
    parser = csv.reader(lines, strict=True, delimiter=delimiter)
    while True:
        line = parser.line_num + 1
        try:
            yield line, next(parser)
        except StopIteration:
            return
        except csv.Error as error:
            if _is_open(error):
                raise TruncatedError from error
            raise DataError(f"line {line}: invalid CSV: {error}") from error


def _tab_records(lines: Iterator[str], delimiter: str, header: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The records of a file with tabs, in which a line with as many cells as the header is a record.

    So a bare quote, which begins a cell and does not end it, joins no lines. But if the lines below such a quote are
    none of these, and the quote ends in one of them, csv's record over several lines counts.

    Raises:
        DataError, TruncatedError: As `csv_rows`.
    """
    waiting: deque[str] = deque()  # lines that were read ahead
    number = 0

    def continued(taken: list[str]) -> Iterator[str]:
        """A line and those below it that are no records; these are added to `taken`."""
        yield taken[0]
        while line := waiting.popleft() if waiting else next(lines, ""):
            if len(_split(line)) == len(header) > 1:
                waiting.appendleft(line)
                return
            taken.append(line)
            yield line

    while line := waiting.popleft() if waiting else next(lines, ""):
        number += 1
        split = _split(line)
        cells, alone = [_unquoted(cell) for cell in split], len(split) == len(header) or not header
        if '"' not in line or (alone and not any(map(_is_open_cell, split))):
            yield number, cells
            continue
        taken, open_to_the_end = [line], False
        try:
            found = next(csv.reader(continued(taken), strict=True, delimiter=delimiter))
        except csv.Error as error:
            found, open_to_the_end = [], _is_open(error) and not waiting
        if found and (not alone or not header or len(found) == len(header)):
            yield number, found
            number += len(taken) - 1
        elif header and open_to_the_end and (not alone or any(map(str.strip, taken[1:]))):
            raise TruncatedError
        elif alone or len(taken) == 1:
            waiting.extendleft(reversed(taken[1:]))
            yield number, cells
        else:
            raise DataError(
                f"line {number}: a quote that begins a cell is not closed in it: double quotes, or leave out"
            )


def _is_open(error: csv.Error) -> bool:
    """Whether csv found no end of a quoted cell."""
    return "unexpected end of data" in str(error)


def _split(line: str) -> list[str]:
    return line.rstrip("\r\n").split("\t")


def _is_open_cell(cell: str) -> bool:
    """Whether a cell begins with a quote that may end in another line."""
    return (found := _QUOTED.fullmatch(cell)) is not None and not found[1]


def _unquoted(cell: str) -> str:
    """The text of a cell, which is quoted if quotes enclose it and those in it are doubled."""
    found = _QUOTED.fullmatch(cell)
    return cell[1:-1].replace('""', '"') if found is not None and found[1] else cell


def is_table(file: io.BufferedReader, named_so: bool) -> bool:
    """Whether a file is a table: not JSON, and named so, or its first line looks like the names of two columns or more.

    Args:
        file: UTF-8 encoded, at its beginning, which is not read.
        named_so: Whether its name is that of a table.
    """
    text = _beginning(file).lstrip()
    if text[:1] in ("[", "{") or named_so:
        return text[:1] not in ("[", "{")
    cells = next(csv.reader(text.splitlines()[:1], delimiter=_delimiter(text)), [])
    return len(cells) > 1 and all(_CELL_OF_HEADER.fullmatch(cell) for cell in cells)


def _delimiter(text: str) -> str:
    """The separator of the cells at the beginning of a table, which may be cut off.

    It is the one by which the row below the header has as many cells as the header; among several, the one of the first
    line with most cells.
    """

    def fit(delimiter: str) -> tuple[bool, int, int]:
        try:
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if _filled(row)]
        except csv.Error:
            rows = []
        header = next((place for place, row in enumerate(rows) if _filled(row) > 1), None)
        if header is None:
            return False, 0, 0
        agree = header + 2 >= len(rows) or len(rows[header + 1]) == len(rows[header])  # the last row may be cut
        return agree, -header, len(rows[header])

    return max(_DELIMITERS, key=fit)


def _is_one_column(text: str) -> bool:
    """Whether the beginning of a table is a name alone, and not a title above the names of several columns."""
    lines = [line for line in text.splitlines() if line.strip()][:3]
    if not lines or not _NAME.fullmatch(_unquoted(lines[0].strip())):
        return False
    for delimiter in _DELIMITERS:
        _, *below = csv.reader(lines, delimiter=delimiter)
        if len(below) == 2 and len(below[0]) == len(below[1]) > 1 and all(map(_NAME.fullmatch, below[0])):
            return False
    return True


def _filled(cells: list[str]) -> int:
    return sum(bool(cell.strip()) for cell in cells)


def _beginning(file: io.BufferedReader) -> str:
    return file.peek(1)[:_SEEN].decode("utf-8-sig", "ignore")


def _header(cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        raise DataError(f"line {line}: the header names the column {repeated[0]!r} twice")
    return names


def _text_lines(file: io.BufferedReader) -> Iterator[str]:
    """The lines with their ends, decoded one by one, so that an error has a line number."""
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"line {number}: not UTF-8: byte 0x{error.object[error.start]:02x}") from error
        if line.find(b"\r", 0, -2 if line.endswith(b"\r\n") else len(line)) >= 0:
            yield from filter(None, _RETURN.split(text))
        else:
            yield text
