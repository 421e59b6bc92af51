"""Streaming parser of CSV files with a header: yields rows as objects with their line numbers.

Standard library only.
"""

import csv
import io
from collections.abc import Iterator

from common.errors import DataError
from datamodules.formats.json_stream import TruncatedError


def csv_rows(file: io.BufferedReader) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Each row with its position for error messages ("line 3", where it begins); an empty cell is None.

    Args:
        file: UTF-8 encoded, with commas, quotes doubled in quoted cells; a byte order mark is skipped. Lines before the
            header with at most one filled cell, such as the warning above a spreadsheet, are skipped, and so are empty
            lines.

    Raises:
        DataError: If the file is not UTF-8 or not CSV, the header names a column twice, or a row has another number of
            cells than the header; names the line, the caller adds the file.
        TruncatedError: If the file ends inside a quoted cell.
    """
    parser = csv.reader(_text_lines(file), strict=True)
    header: list[str] | None = None
    while True:
        line = parser.line_num + 1
        try:
            cells = next(parser, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise TruncatedError from error
            raise DataError(f"line {line}: invalid CSV: {error}") from error
        if cells is None:
            return
        filled = sum(bool(cell.strip()) for cell in cells)
        if header is None:
            header = _header(cells, line) if filled > 1 else None
        elif filled:
            if len(cells) != len(header):
                raise DataError(f"line {line}: the row has {len(cells)} cells, the header {len(header)}")
            yield f"line {line}", {name: cell or None for name, cell in zip(header, cells, strict=True) if name}


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
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"line {number}: not UTF-8: byte 0x{error.object[error.start]:02x}") from error
