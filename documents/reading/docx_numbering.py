"""Automatic numbers of headings and list items in Word documents, as Word prints them."""

from dataclasses import dataclass, field

from docx.oxml.ns import qn
from lxml import etree

from documents.reading.docx_styles import number_of, value
from documents.written_numbers import written

_MAX_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list is numbered."""

    style: str = "decimal"  # bullet, decimal, lowerLetter, upperRoman, ...
    text: str = ""  # %1 stands for the number of the first level
    start: int = 1


@dataclass
class _List:
    levels: dict[int, Level] = field(default_factory=dict)
    counts: list[int | None] = field(default_factory=lambda: [None] * _MAX_LEVELS)  # of the last item on each level


class Numbering:
    """Counts the items of all lists of a document, which are asked for in order.

    Args:
        root: The numbering part's root element; None if the document has none.
    """

    def __init__(self, root: etree._Element | None) -> None:
        self._lists: dict[str, _List] = {}
        if root is None:
            return
        abstract: dict[str, _List] = {}
        for element in root.iterfind(qn("w:abstractNum")):
            levels = {number_of(level.get(qn("w:ilvl"))): _level(level) for level in element.iterfind(qn("w:lvl"))}
            abstract[element.get(qn("w:abstractNumId")) or ""] = _List(levels)
        for element in root.iterfind(qn("w:num")):
            shared = abstract.get(value(element, "w:abstractNumId"), _List())
            overrides = list(element.iterfind(qn("w:lvlOverride")))
            if overrides:  # counts for itself
                shared = _List(dict(shared.levels))
            for override in overrides:
                place, own = number_of(override.get(qn("w:ilvl"))), override.find(qn("w:lvl"))
                level = _level(own) if own is not None else shared.levels.get(place, Level())
                start = number_of(value(override, "w:startOverride"), level.start)
                shared.levels[place] = Level(level.style, level.text, start)
            self._lists[element.get(qn("w:numId")) or ""] = shared

    def next(self, list_id: str, place: int) -> tuple[str, int] | None:
        """What Word prints before the next item of a list, and its number; ("", 0) for a bullet.

        None if there is no such list.

        Args:
            list_id: `numId`.
            place: The item's level, from 0.
        """
        found = self._lists.get(list_id)
        place = min(max(place, 0), _MAX_LEVELS - 1)
        if found is None:
            return None
        level = found.levels.get(place, Level(text=f"%{place + 1}."))
        count = found.counts[place]
        number = level.start if count is None else count + 1
        found.counts[place] = number
        found.counts[place + 1 :] = [None] * (_MAX_LEVELS - place - 1)
        if level.style == "bullet":
            return "", 0
        text = level.text
        for above in range(place + 1):
            known = found.levels.get(above, Level())
            last = found.counts[above]
            text = text.replace(f"%{above + 1}", written(known.start if last is None else last, known.style))
        return ("" if level.style == "none" else text), number


def _level(element: etree._Element) -> Level:
    start = number_of(value(element, "w:start"), 1)
    return Level(value(element, "w:numFmt") or "decimal", value(element, "w:lvlText"), start)
