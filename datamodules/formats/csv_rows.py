"""Streaming parser of tables with a header (CSV, TSV): yields rows as objects with their line numbers.

Standard library only.
"""

import csv
import io
import re
from collections.abc import Iterator

from common.errors import DataError
from datamodules.formats.json_stream import TruncatedError

LONGEST_CELL = 1 << 27  # characters; a quote that is not closed would else take all the memory
_DELIMITERS = ",\t;|"
_SEEN = 1 << 16  # bytes of a beginning
_CELL_OF_HEADER = re.compile(r"\s*[\w .()/-]{1,60}\s*")
_RETURN = re.compile(r"(?<=\r)(?!\n)")  # ends a line of old files
csv.field_size_limit(LONGEST_CELL)


def csv_rows(file: io.BufferedReader) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Each row with its position for error messages ("line 3", where it begins); an empty cell is None.

    Args:
        file: UTF-8 encoded, its cells parted by commas, tabs, semicolons or bars, as its first lines show; quotes
            doubled in quoted cells, or in a file with tabs part of the text if its first lines do not quote so; a byte
            order mark is skipped. Lines before the header with at most one filled cell,
            such as the warning above a spreadsheet, are skipped, and so are empty lines.

    Raises:
        DataError: If the file is not UTF-8 or not CSV, it has no header, that names a column twice, or a row has
            another number of cells than the header; names the line, the caller adds the file.
        TruncatedError: If the file ends inside a quoted cell.
    """
    beginning = _beginning(file)
    delimiter = _delimiter(beginning)
    bare = delimiter == "\t" and _has_bare_quotes(beginning)
    parser = csv.reader(
        _text_lines(file),
        strict=True,
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL,
    )
    header: list[str] | None = None
    first = 0  # line with text
    while True:
        line = parser.line_num + 1
        try:
            cells = next(parser, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise TruncatedError from error
            raise DataError(f"line {line}: invalid CSV: {error}") from error
        if cells is None:
            if first and header is None:
                raise DataError(
                    f"line {first}: no header: a table begins with the names of its columns, two or more, parted by "
                    "commas, tabs, semicolons or bars"
                )
            return
        filled = _filled(cells)
        first = first or (line if filled else 0)
        if header is None:
            header = _header(cells, line) if filled > 1 else None
        elif filled:
            if len(cells) != len(header):
                raise DataError(f"line {line}: the row has {len(cells)} cells, the header {len(header)}")
            if delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in cells):  # several rows taken as one
                raise DataError(
                    f"line {line}: a quote that begins a cell is not closed in it: double quotes, or leave out"
                )
            yield f"line {line}", {name: cell or None for name, cell in zip(header, cells, strict=True) if name}


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
    """What parts the cells at the beginning of a table, perhaps cut.

    The one by which the row below the header has as many cells; by several, that of the first line and of most cells.
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


def _has_bare_quotes(text: str) -> bool:
    """Whether the beginning of a file with tabs has a quote at the start of a cell that does not enclose it."""
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True):
            pass
    except csv.Error as error:
        return "unexpected end of data" not in str(error)
    return False


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
