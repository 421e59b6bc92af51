"""Headings of a document: named by its outline or its table of contents, or recognized by numbers and styles."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from documents.pdf.contents import ContentsEntry
from documents.pdf.heading_candidates import Group, Style, is_chapter, looks_like_heading
from documents.pdf.heading_levels import levels
from documents.pdf.lines import Line, Placed
from documents.pdf.spacing import Body

_MAX_MISSHAPEN = 0.4  # of the groups in a style that cannot be headings, for the others to be ones
_MAX_HANGING = 0.5  # of the groups in a style with the text below indented: these are terms of a list
_INDENTED = 1.0  # font sizes
_MIN_SLANTED = 3  # groups in the text's size that are but italic, for them to be headings
_FEW = 12  # groups of a document whose title may look like its headings
_MIN_KNOWN = 4  # headings that an outline or a table of contents names, for their sizes to say what is too large


@dataclass(frozen=True, slots=True)
class FoundHeading:
    """A heading and the items that it takes."""

    first: int
    last: int
    text: str
    level: int
    page: int


def headings(
    items: Sequence[Line | Placed],
    groups: Sequence[Group],
    named: Mapping[int, ContentsEntry],
    body: Body,
    front: Container[int],
) -> list[FoundHeading]:
    """Headings in reading order.

    Args:
        items: What is on the pages of a document.
        groups: Their lines, see `heading_candidates.groups`.
        named: Groups that the outline or the table of contents names, with their levels there.
        body: The style of the document's text.
        front: Groups that are no headings unless an entry names them: the title, authors, and what else stands before
            the text.
    """
    looks = {_look(groups[at]) for at in named if groups[at].number and groups[at].line.bold}
    shaped = {
        at
        for at, group in enumerate(groups)
        if at not in front and looks_like_heading(group, body, exact=_look(group) in looks)
    }
    accepted = _accepted(items, groups, shaped, named, body)
    chosen = [at for at in range(len(groups)) if at in named or (at in shaped and groups[at].style in accepted)]
    picked = [groups[at] for at in chosen]
    depth = levels(picked, {position: named[at].level for position, at in enumerate(chosen) if at in named})
    return [
        FoundHeading(groups[at].first, groups[at].last, _text(groups[at], named.get(at)), level, groups[at].line.page)
        for at, level in zip(chosen, depth, strict=True)
    ]


def _look(group: Group) -> tuple[Style, str, tuple[int, int, int]]:
    """All of a group's style: what looks exactly like numbered headings is one even if its text does not look so."""
    return group.style, group.line.font, group.line.color


def _text(group: Group, entry: ContentsEntry | None) -> str:
    """A heading's text; that of its entry if the page sets "CHAPTER ONE" above it."""
    return entry.title if entry and is_chapter(group.lines[0].text) and len(group.lines) > 1 else group.text


def _accepted(
    items: Sequence[Line | Placed],
    groups: Sequence[Group],
    shaped: Container[int],
    named: Container[int],
    body: Body,
) -> set[Style]:
    """Styles whose well-shaped groups are headings."""
    by_style = defaultdict(list)
    for at, group in enumerate(groups):
        by_style[group.style].append(at)
    sizes = [group.line.size for at, group in enumerate(groups) if at in named]
    largest = max(sizes) if len(sizes) >= _MIN_KNOWN else float("inf")
    accepted = set()
    for style, members in by_style.items():
        good = [groups[at] for at in members if at in shaped]
        counted = len(members) - (len(groups) <= _FEW and members[0] not in shaped)  # the first may be the title
        if not good or len(good) < (1 - _MAX_MISSHAPEN) * counted:
            continue
        size, bold, italic, _ = style
        small = size <= 1.06 * body.size
        unnumbered = [group for group in good if not group.number]
        slanted = small and italic and not bold and len(unnumbered) == len(good)
        hanging = sum(_hanging(items, group) for group in unnumbered)
        doubtful = (
            size > 1.03 * largest  # larger than chapters: the title page's
            or (slanted and len(good) < _MIN_SLANTED)
            or (small and hanging > _MAX_HANGING * len(good))
        )
        if not doubtful or any(at in named for at in members):
            accepted.add(style)
    return accepted


def _hanging(items: Sequence[Line | Placed], group: Group) -> bool:
    """Whether the lines below a group are indented: it is the term of a list, and they are its description."""
    below = [item for item in items[group.last + 1 : group.last + 3] if isinstance(item, Line)]
    below = [line for line in below if line.page == group.line.page and line.left == group.line.left]
    limit = group.line.box.left + _INDENTED * group.line.size
    return bool(below) and all(line.box.left > limit for line in below)
