"""Footnotes: small print at the foot of a column that begins with a mark."""

import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from unicodedata import normalize

from documents.pdf.lines import Line, Placed
from documents.pdf.spacing import Body
from documents.raised import note_mark

RAISED = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"  # figures
_NUMBER = re.compile(rf"([\d{RAISED}]{{1,3}})\s*")
_MARKS = re.compile(  # behind a word, but not the exponents of 10 and of metres
    rf"(?<=[^\s{RAISED}\u207a\u207b])(?<!\b10)(?<!\bm)(?<!\b[kcmd]m)([{RAISED}]+(?:[,;] ?[{RAISED}]+)*)(?!\w)"
)
_MARK = re.compile(rf"(?:[\d{RAISED}]{{1,3}}|[*\u2217\u2020\u2021§¶\u2016#]{{1,3}}|[a-z](?=\s))\s*\S")
_SMALLER = 0.93  # of the body's size
_MAX_LINES = 40  # of a column's footnotes


def footnotes(items: Sequence[Line | Placed], body: Body) -> set[int]:
    """Which items are footnotes."""
    found: set[int] = set()
    for at, item in enumerate(items):
        below = items[at + 1] if at + 1 < len(items) else None
        if isinstance(item, Line) and _ends_column(item, below):
            found.update(_notes(items, at, body))
    return found


def marks_apart(items: Sequence[Line | Placed], notes: Container[int]) -> list[Line | Placed]:
    """The items, with the raised numbers of the notes of a page set apart from the words on it: "$320 [1]"."""
    numbers = defaultdict[int, set[str]](set)
    for at, item in enumerate(items):
        if at in notes and isinstance(item, Line) and (match := _NUMBER.match(item.text)):
            numbers[item.page].add(normalize("NFKC", match[1]))

    def apart(item: Line | Placed) -> Line | Placed:
        if not isinstance(item, Line) or item.lead or item.page not in numbers:
            return item

        def written(match: re.Match[str]) -> str:
            marks = normalize("NFKC", match[1])
            return note_mark(marks) if set(re.findall(r"\d+", marks)) <= numbers[item.page] else match[0]

        return replace(item, text=_MARKS.sub(written, item.text))

    return [apart(item) for item in items]


def _ends_column(line: Line, below: Line | Placed | None) -> bool:
    """Whether a line is the last one of its column, as nothing below it on the page follows it."""
    return below is None or below.page != line.page or below.box.top < line.box.top


def _notes(items: Sequence[Line | Placed], end: int, body: Body) -> range:
    """The footnotes whose last line is given; empty if it is none."""
    start = None
    for at in range(end, max(-1, end - _MAX_LINES), -1):
        line = items[at]
        if not isinstance(line, Line) or line.size > _SMALLER * body.size or line.page != items[end].page:
            break
        if at < end and line.box.top > items[at + 1].box.top:
            break
        if _MARK.match(line.text):
            start = at
    return range(0) if start is None else range(start, end + 1)


def begins_note(line: Line) -> bool:
    """Whether a line of footnotes begins one."""
    return _MARK.match(line.text) is not None
