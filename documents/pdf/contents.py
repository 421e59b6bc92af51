"""The printed table of contents: its entries with their levels, and which lines it takes."""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mode

from documents.pdf.lines import Line, Placed
from documents.pdf.numbering import number_of

TITLE = re.compile(
    r"(?:\d+\.?\s+)?(?:(?:short |brief |detailed |full )?(?:table of )?contents|summary of contents|"
    r"inhalt(?:sverzeichnis)?|sommaire|table des matières|índice(?: general| de contenidos)?|contenido|indice|sommario|"
    r"inhoud(?:sopgave)?|spis treści|содержание|目次|目录)",
    re.IGNORECASE,
)
_LISTS = re.compile(
    r"(?:list of |liste des |lista de |)(?:figures|tables|examples|listings|algorithms|procedures|equations|"
    r"illustrations)",
    re.IGNORECASE,
)
_LABEL = r"(?P<label>\d{1,4}|[ivxlcIVXLC]{1,7}|[A-Z]?\d*[-.\u2013]\d{1,3})"
_LEADERS = re.compile(rf"(?P<title>\S.*?)[\s.…·_]*(?:(?:[.…·_]\s?){{3,}})\s*{_LABEL}")
_PLAIN = re.compile(rf"(?P<title>\S.*?)\s+{_LABEL}")
_LABEL_ONLY = re.compile(_LABEL)
_MIN_ENTRIES = 3
_SAME_LEFT = 3.0  # points


@dataclass(frozen=True, slots=True)
class ContentsEntry:
    """A heading that the table of contents or an outline names."""

    title: str
    level: int  # from 1
    page: int | None = None  # in the file, from 1; None if it is not known
    label: int | None = None  # the printed number of its page


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry before its level is known."""

    title: str
    label: int | None
    line: Line


def key(text: str) -> str:
    """A text's letters and digits alone, for comparison."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def table_of_contents(items: Sequence[Line | Placed]) -> tuple[list[ContentsEntry], set[int]]:
    """Entries of the tables of contents, and the items that these take, with lists of figures and tables and titles."""
    lines = [(at, item) for at, item in enumerate(items) if isinstance(item, Line)]
    later = {key(line.text): at for at, line in lines}  # where a text stands last
    taken: set[int] = set()
    best: list[_Found] = []
    at = 0
    while at < len(lines):
        title = lines[at][1].text.strip()
        contents, listed = TITLE.fullmatch(title) is not None, _LISTS.fullmatch(title) is not None
        first = at + 1 if contents or listed else at
        found, end = _entries(lines, first, later, titled=contents or listed)
        least = 1 if title.casefold().startswith("list") else _MIN_ENTRIES
        labelled = [item for item in found if item.label is not None]
        if len(labelled if listed else found) >= least and _counts_up(found):
            taken.update(position for position, _ in lines[at:end])
            if not listed and not _captions(found) and len(found) > len(best):
                best = found
            at = end
        else:
            at += 1
    return _levels(best), taken


def _entries(
    lines: Sequence[tuple[int, Line]], first: int, later: dict[str, int], titled: bool
) -> tuple[list[_Found], int]:
    """Entries from a line on, and the line after the last of them."""
    found: list[_Found] = []
    end = first
    pending: list[Line] = []  # lines of an entry whose last line has the page's number, or of none
    for at in range(first, len(lines)):
        position, line = lines[at]
        text = line.text.strip()
        if len(pending) > 2 or (found and (TITLE.fullmatch(text) or _LISTS.fullmatch(text))):
            break
        at_the_right = line.right - line.box.right < line.size
        match = _LEADERS.fullmatch(text) or (_PLAIN.fullmatch(text) if titled and at_the_right else None)
        again = titled and later.get(key(text), position) > position and len(key(text)) > 2 and _like(line, found)
        if match:
            parts = [part.text for part in pending if not _LABEL_ONLY.fullmatch(part.text)]
            label = int(match["label"]) if match["label"].isdecimal() else None
            found.append(_Found(" ".join([*parts, match["title"]]).strip(" ."), label, (pending or [line])[0]))
        elif again:
            found.append(_Found(text, None, line))
        elif titled or found:
            pending.append(line)
            continue
        else:
            break
        pending, end = [], at + 1
    return found, end


def _like(line: Line, found: Sequence[_Found]) -> bool:
    """Whether a line looks like the last entry, of those without page numbers; the first one may look like anything."""
    if any(item.label is not None for item in found):
        return False
    return not found or (line.page == found[-1].line.page and abs(line.size - found[-1].line.size) < 0.1 * line.size)


def _counts_up(found: Sequence[_Found]) -> bool:
    """Whether the pages of entries come one after the other, as they do not in an index."""
    pages = [item.label for item in found if item.label is not None]
    falls = sum(one > other for one, other in pairwise(pages))
    return falls <= 0.1 * len(pages)


def _captions(found: Sequence[_Found]) -> bool:
    """Whether entries are those of a list of figures or tables that has no title."""
    captions = [item for item in found if re.match("fig|table|example|listing", item.title, re.IGNORECASE)]
    return len(captions) > 0.5 * len(found)


def _levels(found: Sequence[_Found]) -> list[ContentsEntry]:
    """Entries with their levels: by their numbers.

    Those without one by the entries that begin at the same place, or by that place.
    """
    numbers = [number_of(item.title) for item in found]
    parts = any(number is not None and number.kind == "part" for number in numbers)
    own = [
        None if number is None or not number.sure else 1 if number.kind == "part" else number.depth + parts
        for number in numbers
    ]
    lefts = sorted(item.line.box.left for item in found)
    places = lefts[:1] + [left for before, left in pairwise(lefts) if left - before > _SAME_LEFT]
    place = [bisect_right(places, item.line.box.left) - 1 for item in found]
    told = defaultdict[int, list[int]](list)
    for at, level in zip(place, own, strict=True):
        if level is not None:
            told[at].append(level)
    entries = []
    for item, level, at in zip(found, own, place, strict=True):
        if level is None:
            nearest = max((other for other in told if other <= at), default=None)
            level = (1 if told else at + 1) if nearest is None else mode(told[nearest]) + at - nearest
        entries.append(ContentsEntry(item.title, level, label=item.label))
    return entries
