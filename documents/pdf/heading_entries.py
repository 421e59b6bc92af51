"""Entries of the outline and of the printed table of contents found again on the pages.

Headings that are known to be ones.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import mode

from documents.pdf.contents import ContentsEntry, key
from documents.pdf.heading_candidates import Group
from documents.pdf.numbering import number_of
from documents.pdf.spacing import Body

_MIN_LETTERS = 2  # of a title without its number


def known(entries: Sequence[ContentsEntry], groups: Sequence[Group], body: Body) -> dict[int, ContentsEntry]:
    """Groups and the entries that name them.

    An entry's group is on the page that the outline gives; or where the page's printed number says, as the other
    entries show it; or the first one after the entry before. The largest font decides between several on one page.
    """
    places = defaultdict(list)
    for at, group in enumerate(groups):
        for name in _names(group.text):
            places[name].append(at)
    offset = _offset(entries, groups, places)
    named: dict[int, ContentsEntry] = {}
    after = -1
    for entry in entries:
        found = {at for name in _names(entry.title) for at in places[name]}
        options = [at for at in sorted(found) if _plausible(groups[at], entry, body)]
        page = entry.page or (entry.label + offset if entry.label is not None and offset is not None else None)
        if page is not None:
            options = [at for at in options if groups[at].line.page == page] or [
                at for at in options if abs(groups[at].line.page - page) <= 1
            ]
        free = [at for at in options if at not in named]
        later = [at for at in free if at > after] or free
        if later:
            nearest = later[:1] if page is None else later
            after = max(nearest, key=lambda at: (groups[at].line.size, groups[at].line.bold, -at))
            named[after] = entry
    return named


def _names(text: str) -> set[str]:
    """The forms of a heading's text: with its number and without."""
    number = number_of(text)
    names = {key(text)}
    if number is not None:
        rest = key(text[number.length :])
        if len(rest) >= _MIN_LETTERS:
            names.add(rest)
    return {name for name in names if len(name) >= _MIN_LETTERS}


def _plausible(group: Group, entry: ContentsEntry, body: Body) -> bool:
    """Whether a group may be an entry's heading: both have the same number or one has none.

    It must not look like running text either.
    """
    one, other = group.number, number_of(entry.title)
    if one is not None and other is not None and one.sure and other.sure and one.values != other.values:
        return False
    distinct = group.line.size > 1.03 * body.size or group.line.bold != body.bold or group.line.italic != body.italic
    return distinct or (group.above >= 1.15 and entry.page is not None) or one is not None


def _offset(entries: Sequence[ContentsEntry], groups: Sequence[Group], places: dict[str, list[int]]) -> int | None:
    """The difference between printed page numbers and pages of the file, by most entries."""
    offsets: list[int] = []
    for title, label in ((entry.title, entry.label) for entry in entries):
        if label is not None:
            offsets += {groups[at].line.page - label for name in _names(title) for at in places.get(name, [])}
    return mode(offsets) if offsets else None
