"""Turns the rows of a file into records; a row without a needed field is left out and counted.

Standard library only.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from common.errors import DataError
from datamodules.formats import row_fields as fields
from datamodules.formats.cells import TableCell, is_null
from datamodules.formats.row_counts import LEFT_OUT, REPEATED_HEADER, RowCounts, RowKind
from datamodules.formats.row_fields import EmptyFieldError, Row

Record = TypeVar("Record")


def converted(
    source: str,
    found: Iterator[tuple[str, Row]],
    convert: Callable[[Row], Record],
    cure: Callable[[Row, bool], str],
    counts: RowCounts,
    some: bool = True,
    look: Callable[[Row, str], object] = lambda *_: None,
) -> Iterator[Record]:
    """The record of each row without a null or empty needed field.

    Args:
        source: Name of the file.
        found: The rows with their places.
        convert: Raises DataError naming the wrong field, its subclass EmptyFieldError where it is null or empty.
        cure: What to do about a row that is wrong, of this row and of whether none before it was read.
        counts: Counts the rows that are left out, and the parts of others.
        some: Whether a file of which no row is left is an error.
        look: Looks at the first row, with source and place.

    Raises:
        DataError: If a row is wrong, named with source and place, or `some` and no row is left.
    """
    read, left_out = False, ""
    for number, (place, row) in enumerate(found):
        if not number:
            look(row, f"{source}, {place}")
        counts.here, counts.row = (source, place), row
        names = [isinstance(value, TableCell) and value.strip() == name for name, value in row.items()]
        if names and all(names):
            counts.add(REPEATED_HEADER)
            continue
        for name, value in row.items():
            if value is not None and is_null(value):
                counts.add(RowKind(f"a cell {str(value).strip()} of the column {name!r}", "read as empty"))
        try:
            with fields.noting() as noted:
                record = convert(row)
        except EmptyFieldError as error:
            counts.add(RowKind(f"a row whose {error}", LEFT_OUT))
            left_out = left_out or f"{place}: {error}"
            continue
        except DataError as error:
            raise DataError(f"{source}, {place}: {error}. {cure(row, not read)}") from error
        for kind in noted:
            counts.add(kind)
        read = True
        yield record
    if some and left_out and not read:
        raise DataError(f"{source}: every row is left out, as {left_out}. {cure({}, True)}")
