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
    """The tables and images of each page, without those that stand on `REPEATED` pages or more and have no caption.

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
    at = 0  # where the latest table or image is in `joined`
    begun: Placed | None = None  # what is there
    end: Placed | None = None  # its last part
    for item in items:
        if isinstance(item, Line):
            joined.append(item)
            continue
        near = len(joined) - at - 1 <= BETWEEN
        whole = _with_part(begun, end, item, left_out) if begun and end and near else None
        if whole:
            notes = [line for line in joined[at + 1 :] if isinstance(line, Line) and _CONTINUED.search(line.text)]
            for note in notes:
                left_out.text("notes that a table goes on left out", note.text)
            joined[at:] = [whole, *(line for line in joined[at + 1 :] if line not in notes)]
        else:
            at = len(joined)
            joined.append(item)
        begun, end = whole or item, item
    return joined


def _appearance(item: Placed) -> object:
    return (item.content.rows, _place(item)) if isinstance(item.content, Table) else item.content.file


def _place(item: Placed) -> tuple[int, ...]:
    return tuple(round(edge / SAME_PLACE) for edge in item.box)


def words_of(item: Placed) -> str:
    """The text in a table or an image."""
    content = item.content
    return " ".join(cell for row in content.rows for cell in row) if isinstance(content, Table) else content.text


def _with_part(begun: Placed, end: Placed, item: Placed, left_out: LeftOut) -> Placed | None:
    """A table with its next part, without the header that this repeats; None if what follows is not its next part.

    Args:
        begun: The table so far.
        end: Its last part.
        item: What follows.
        left_out: Gets what is left out.
    """
    table, part = begun.content, item.content
    if not (isinstance(table, Table) and isinstance(part, Table) and _continues(table, end, part, item)):
        return None
    heads = range(1, table.header_rows + 1)
    repeated = max((rows for rows in heads if part.rows[:rows] == table.rows[:rows]), default=0)
    left_out.text("repeated heads of tables left out", " ".join(cell for row in part.rows[:repeated] for cell in row))
    left_out.text("captions of further parts of tables left out", part.caption)
    return replace(begun, content=replace(table, rows=(*table.rows, *part.rows[repeated:])))


def _continues(table: Table, end: Placed, part: Table, item: Placed) -> bool:
    """Whether a table may go on in another one, on the next page, or under the same header higher in the next column.

    Parts under one header may differ in width, as a rule may say how wide one is and its words how wide the other one
    is.
    """
    same_header = table.rows[: table.header_rows] == part.rows[: table.header_rows]
    most_apart = max(SAME_WIDTH, SAME_HEADER_WIDTH * end.box.width) if same_header else SAME_WIDTH
    next_column = item.page == end.page and item.box.left >= end.box.right and item.box.top < end.box.top
    number, other = _NUMBER.match(table.caption), _NUMBER.match(part.caption)
    return (
        len(table.rows[0]) == len(part.rows[0])
        and abs(end.box.width - item.box.width) <= most_apart
        and (item.page == end.page + 1 or (next_column and same_header))
        and (not part.caption or (number is not None and other is not None and number[1] == other[1]))
    )
