"""Tables and images of a document's pages together.

Parts of a table on following pages joined, what every page repeats left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from documents.left_out import LeftOut
from documents.pdf.lines import Line, Placed
from documents.records import Table

REPEATED = 3  # pages that show the same table or image if it is a running header or a logo
SAME_PLACE = 4.0  # points
SAME_WORDS = 0.5  # of a table's different words that a running panel has too
SAME_WIDTH = 6.0  # points that parts of a table differ by
SAME_HEADER_WIDTH = 0.1  # of a part's width that one with the same header differs by
BETWEEN = 3  # lines at most between parts of a table: page numbers, "continued on next page"

_NUMBER = re.compile(r"^\D*?((?:[A-Z]\.?)?\d+(?:[.-]\d+)*|[IVXLC]+\b)")
_CONTINUED = re.compile(r"\b(?:continued|continues|cont|cont'd|fortsetzung|fortgesetzt|suite)\b", re.IGNORECASE)


def without_repeated(pages: Mapping[int, Sequence[Placed]]) -> dict[int, list[Placed]]:
    """What is placed on each page, without what `REPEATED` pages or more show and has no caption.

    Images, and tables at the same place.

    A table at the place of such a one that says partly the same is left out too: it has the page's number in it.
    """
    shown: dict[object, set[int]] = defaultdict(set)
    for number, placed in pages.items():
        for item in placed:
            shown[_appearance(item)].add(number)
    repeated = {appearance for appearance, numbers in shown.items() if len(numbers) >= REPEATED}
    panels: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for placed in pages.values():
        for item in placed:
            if _appearance(item) in repeated:
                panels[_place(item)].update(words_of(item).split())

    def kept(item: Placed) -> bool:
        if item.content.caption:
            return True
        if not isinstance(item.content, Table):
            return _appearance(item) not in repeated
        words = {*words_of(item).split()}
        return len(words & panels[_place(item)]) < SAME_WORDS * len(words)

    return {number: [item for item in placed if kept(item)] for number, placed in pages.items()}


def join_continued(items: Iterable[Line | Placed], left_out: LeftOut) -> list[Line | Placed]:
    """A document's contents with each table that goes on at the top of the next page or column as one, where it begins.

    The header that the second part repeats is left out, and so is what says between the parts that the table goes on.

    Args:
        items: In reading order, without running headers and footers.
        left_out: Gets what is left out.
    """
    joined: list[Line | Placed] = []
    last: int | None = None  # where the latest table is in `joined`
    end: Placed | None = None  # its last part
    for item in items:
        if isinstance(item, Placed) and isinstance(item.content, Table):
            before = joined[last] if last is not None else None
            if (
                last is not None
                and isinstance(before, Placed)
                and isinstance(before.content, Table)
                and end is not None
                and _follows(end, item)
                and len(joined) - last - 1 <= BETWEEN
                and _continues(before.content, item.content)
            ):
                joined[last] = replace(before, content=_one_table(before.content, item.content, left_out))
                between = joined[last + 1 :]
                joined[last + 1 :] = [line for line in between if not _says_continued(line)]
                for line in between:
                    if isinstance(line, Line) and _says_continued(line):
                        left_out.text("notes that a table goes on left out", line.text)
            else:
                joined.append(item)
                last = len(joined) - 1
            end = item
        else:
            joined.append(item)
            if isinstance(item, Placed):
                last = None
    return joined


def _appearance(item: Placed) -> object:
    return (item.content.rows, _place(item)) if isinstance(item.content, Table) else item.content.file


def _place(item: Placed) -> tuple[int, ...]:
    return tuple(round(edge / SAME_PLACE) for edge in item.box)


def words_of(item: Placed) -> str:
    """What is written in a table or an image."""
    content = item.content
    return " ".join(cell for row in content.rows for cell in row) if isinstance(content, Table) else content.text


def _says_continued(item: Line | Placed) -> bool:
    return isinstance(item, Line) and _CONTINUED.search(item.text) is not None


def _follows(part: Placed, item: Placed) -> bool:
    """Whether a table may go on in another one by their places.

    On the next page, or under the same header higher in the next column.

    Parts under one header may differ in width, as a rule may say how wide one is and its words how wide the other one
    is.
    """
    one, other = part.content, item.content
    if not (isinstance(one, Table) and isinstance(other, Table)):
        return False
    same_header = one.rows[: one.header_rows] == other.rows[: one.header_rows]
    apart = abs(part.box.width - item.box.width)
    if apart > SAME_WIDTH and not (same_header and apart <= SAME_HEADER_WIDTH * part.box.width):
        return False
    next_column = item.page == part.page and item.box.left >= part.box.right and item.box.top < part.box.top
    return item.page == part.page + 1 or (next_column and same_header)


def _continues(table: Table, part: Table) -> bool:
    """Whether a table may be the next part of another one."""
    if len(table.rows[0]) != len(part.rows[0]):
        return False
    if not part.caption:
        return True
    number, other = _NUMBER.match(table.caption), _NUMBER.match(part.caption)
    return number is not None and other is not None and number[1] == other[1]


def _one_table(table: Table, part: Table, left_out: LeftOut) -> Table:
    heads = range(1, table.header_rows + 1)
    repeated = max((rows for rows in heads if part.rows[:rows] == table.rows[:rows]), default=0)
    left_out.text("repeated heads of tables left out", " ".join(cell for row in part.rows[:repeated] for cell in row))
    left_out.text("captions of further parts of tables left out", part.caption)
    return replace(table, rows=(*table.rows, *part.rows[repeated:]))
