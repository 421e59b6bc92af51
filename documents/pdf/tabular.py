"""Whether lines of words in columns are a table's.

Not prose in columns, a list, code, equations or a table of contents.
"""

import re
from collections.abc import Sequence
from statistics import median

from documents.pdf.clusters import fragments
from documents.pdf.fonts import is_monospaced
from documents.pdf.page import PageWord
from documents.pdf.table_columns import cells_of, column_at, column_ends
from documents.pdf.table_lines import Line

PROSE_WORDS = 4  # in a line of a column, usually
PROSE_LINES = 6  # fewer lines are cells of text
FULL_LINE = 0.85  # of a column's width
SIDE_BY_SIDE = 0.3  # of the lines have words in several columns; cells may have several lines
SAME_PLACE = 2.0  # points that aligned words differ by
NUMBERS = 0.5  # share of a column's lines that are numbers, which may be aligned at their decimal points
ALIGNED_LINES = 4  # fewer lines say nothing about alignment
CODE_SHARE = 0.8  # of the words, by their fonts' names
MEASURED_SHARE = 0.9  # by their widths
MIN_MEASURED = 8  # different words that say whether a font's characters are equally wide
# usual widths of a character; in such a font no ink is wider than its character, as that of "mm" is in others
WIDEST = 1.15
MOSTLY = 0.6  # share of lines or words that decides

_MARKER = re.compile(r"(?:[•◦▪■●○‣⁃∗*·–—➢✓-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.):]|\[\d{1,3}\]|\d{1,3})$")  # noqa: RUF001
_LEADER = re.compile(r"(?:\.\s?){4,}")
_PAGE_NUMBER = re.compile(r"(?:\d{1,4}|[ivxlc]{1,6})$")
_EQUATION_NUMBER = re.compile(r"\([A-Z]?\.?\d+(?:\.\d+)*[a-z]?\)$")


def is_tabular(lines: Sequence[Line], borders: Sequence[float] | None = None) -> bool:
    """Whether lines read as rows of a table.

    Args:
        lines: Lines that follow each other, from the top.
        borders: Where columns end; None looks for it.
    """
    words = [word for line in lines for word in line]
    if not words:
        return False
    borders = column_ends(lines) if borders is None else borders
    if not borders:
        return False
    cells = [cells_of(line, borders) for line in lines]
    filled = [[row[column] for row in cells if column in row] for column in range(len(borders) + 1)]
    side_by_side = sum(len({column_at(part[0].box.center, borders) for part in fragments(line)}) > 1 for line in lines)
    return (
        side_by_side >= SIDE_BY_SIDE * len(lines)
        and all(map(_is_aligned, filled))
        and not (
            _is_code(words)
            or _is_list(filled)
            or _is_contents(lines, filled)
            or _are_equations(filled)
            or all(is_prose(column) for column in filled)
        )
    )


def _is_aligned(column: Sequence[Line]) -> bool:
    """Whether most lines of a column begin, end or are centered at one place, or are numbers."""
    if len(column) < ALIGNED_LINES:
        return True
    if sum(any(letter.isdecimal() for letter in part[-1].text) for part in column) >= NUMBERS * len(column):
        return True
    edges = [(part[0].box.left, part[-1].box.right) for part in column]
    for places in ([left for left, _ in edges], [right for _, right in edges], [sum(edge) / 2 for edge in edges]):
        most = max(
            sum(abs(place - other) <= SAME_PLACE for other in places)
            for place in sorted(places)[:: len(places) // 20 + 1]
        )
        if most >= MOSTLY * len(places):
            return True
    return False


def _is_code(words: Sequence[PageWord]) -> bool:
    """Whether words are set in a font all of whose characters are equally wide, by its name or as measured."""
    if sum(is_monospaced(word.font) for word in words) > CODE_SHARE * len(words):
        return True
    measured = {
        word.text: (word.box.right - word.box.left) / len(word.text) / word.size
        for word in words
        if len(word.text) > 1 and not any(letter.isdecimal() for letter in word.text)
    }
    widths = [width for text, width in measured.items() if len(text) > 2]
    if len(widths) < MIN_MEASURED:  # digits are equally wide in most fonts
        return False
    usual = median(widths)
    if max(measured.values()) > WIDEST * usual:
        return False
    return sum(0.92 * usual <= width <= 1.05 * usual for width in widths) > MEASURED_SHARE * len(widths)


def _is_list(columns: Sequence[Sequence[Line]]) -> bool:
    """A column of bullets or numbers before one of text."""
    first = columns[0]
    return (
        len(columns) == 2
        and len(first) > 0
        and all(len(part) == 1 and bool(_MARKER.match(part[0].text)) for part in first)
        and median(len(part) for part in columns[1]) >= PROSE_WORDS
    )


def _is_contents(lines: Sequence[Line], columns: Sequence[Sequence[Line]]) -> bool:
    """Lines with dots that lead to page numbers, or that end with rising page numbers."""
    leaders = sum(bool(_LEADER.search(" ".join(word.text for word in line))) for line in lines)
    if leaders >= 2 and leaders >= 0.3 * len(lines):
        return True
    last = [part[-1].text for part in columns[-1]]
    numbers = [int(text) for text in last if text.isdecimal()]
    return (
        len(columns) <= 3
        and len(last) >= 3
        and all(_PAGE_NUMBER.match(text) for text in last)
        and len(last) >= MOSTLY * len(lines)
        and numbers == sorted(numbers)
        and median(len(part) for part in columns[-2]) >= 2
    )


def _are_equations(columns: Sequence[Sequence[Line]]) -> bool:
    last = [part[-1].text for part in columns[-1]]
    return len(last) > 0 and all(_EQUATION_NUMBER.match(text) for text in last)


def is_prose(column: Sequence[Line]) -> bool:
    """Whether the lines of a column are running text: most of them are full."""
    if len(column) < PROSE_LINES or median(len(part) for part in column) < PROSE_WORDS:
        return False
    left, right = min(part[0].box.left for part in column), max(part[-1].box.right for part in column)
    full = sum(part[-1].box.right - part[0].box.left >= FULL_LINE * (right - left) for part in column)
    return full >= MOSTLY * len(column)
