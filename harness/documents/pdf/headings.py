"""Headings of a document: named by its outline or its table of contents, or recognized by numbers and styles."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from harness.documents.pdf.contents import Entry
from harness.documents.pdf.heading_candidates import Group, Style, looks_like_heading
from harness.documents.pdf.heading_entries import known
from harness.documents.pdf.heading_levels import levels
from harness.documents.pdf.lines import Line, Placed
from harness.documents.pdf.spacing import Body

_MOST_MISSHAPEN = 0.4  # of the groups in a style that cannot be headings, for the others to be ones
_MOST_HANGING = 0.5  # of the groups in a style with the text below indented: these are terms of a list
_INDENTED = 1.0  # font sizes
_LEAST_KNOWN = 4  # headings that an outline or a table of contents names, for their sizes to say what is too large


@dataclass(frozen=True, slots=True)
class Found:
    """A heading and the items that it takes."""

    first: int
    last: int
    text: str
    level: int
    page: int


def headings(
    items: Sequence[Line | Placed],
    groups: Sequence[Group],
    entries: Sequence[Sequence[Entry]],
    body: Body,
    front: Container[int],
) -> list[Found]:
    """Headings in reading order.

    Args:
        items: What is on the pages of a document.
        groups: Their lines, see `heading_candidates.groups`.
        entries: Of the outline, of the table of contents: the first that names any heading gives levels, all say what is a heading.
        body: The style of the document's text.
        front: Groups that are no headings unless an entry names them: the title, authors, and what else stands before the text.
    """
    named: dict[int, int] = {}
    for source in entries:
        found = known(source, groups, body)
        if not named:
            named = found
        else:
            shared = [named[at] - level for at, level in found.items() if at in named]
            if shared and len(set(shared)) == 1:
                named |= {at: max(1, level + shared[0]) for at, level in found.items() if at not in named}
    shaped = {at for at, group in enumerate(groups) if at not in front and looks_like_heading(group, body)}
    accepted = _accepted(items, groups, shaped, named, body)
    chosen = [at for at in range(len(groups)) if at in named or (at in shaped and groups[at].style in accepted)]
    picked = [groups[at] for at in chosen]
    depth = levels(picked, {position: named[at] for position, at in enumerate(chosen) if at in named})
    return [
        Found(group.first, group.last, group.text, level, group.line.page)
        for group, level in zip(picked, depth, strict=True)
    ]


def _accepted(
    items: Sequence[Line | Placed],
    groups: Sequence[Group],
    shaped: Container[int],
    named: Mapping[int, int],
    body: Body,
) -> set[Style]:
    """Styles whose well-shaped groups are headings."""
    by_style = defaultdict(list)
    for at, group in enumerate(groups):
        by_style[group.style].append(at)
    largest = max((groups[at].line.size for at in named), default=0.0) if len(named) >= _LEAST_KNOWN else float("inf")
    accepted = set()
    for style, members in by_style.items():
        good = [at for at in members if at in shaped]
        if not good or len(good) < (1 - _MOST_MISSHAPEN) * len(members):
            continue
        if style[0] > 1.03 * largest and not any(at in named for at in members):
            continue  # larger than chapters: the title page's
        hanging = sum(_hanging(items, groups[at]) for at in good if not groups[at].number)
        if style[0] <= 1.06 * body.size and hanging > _MOST_HANGING * len(good) and not any(at in named for at in good):
            continue
        accepted.add(style)
    return accepted


def _hanging(items: Sequence[Line | Placed], group: Group) -> bool:
    """Whether the lines below a group are indented: it is the term of a list, and they are its description."""
    below = [item for item in items[group.last + 1 : group.last + 3] if isinstance(item, Line)]
    below = [line for line in below if line.page == group.line.page and line.left == group.line.left]
    limit = group.line.box.left + _INDENTED * group.line.size
    return bool(below) and all(line.box.left > limit for line in below)
