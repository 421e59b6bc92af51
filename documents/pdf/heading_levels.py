"""Levels of headings, from what is known of some, their numbers and their styles."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from documents.pdf.heading_candidates import Group, Style
from documents.records import MAX_LEVELS

_SAME_SIZE = 0.03  # of a size
_ABOUT_AS_LARGE = 0.12
_DEEP = 4  # values of a number


class _Class(NamedTuple):
    """Headings that look alike and have numbers of one kind."""

    style: Style
    kind: str  # of the number; "" for none, "named" for a letter after Appendix
    depth: int


def levels(headings: Sequence[Group], known: Mapping[int, int]) -> list[int]:
    """The level of each heading, in reading order, from 1 to `MAX_LEVELS`.

    None is more than one deeper than the one before.

    Args:
        headings: The headings in reading order.
        known: Levels of some of them, by position, as an outline or a table of contents tells them.
    """
    classes = [_class(group) for group in headings]
    members = defaultdict(list)
    for at, kind in enumerate(classes):
        members[kind].append(at)
    fixed = _by_knowledge(members, known)
    fixed = _by_numbers(headings, members, fixed)
    settled = _by_style(members, fixed)
    found = [known.get(at, settled[kind]) for at, kind in enumerate(classes)]
    return _without_jumps(found)


def _class(group: Group) -> _Class:
    number = group.number
    if number is None or not number.sure:
        return _Class(group.style, "", 0)
    named = number.kind == "letter" and number.depth == 1 and number.named
    return _Class(group.style, "named" if named else number.kind, number.depth)


def prominence(style: Style) -> tuple[float, bool, bool, bool]:
    """By which styles are ordered: larger, bold, capitals, upright."""
    size, bold, italic, capitals = style
    return (size, bold, capitals, not italic)


def _outranks(one: Style, other: Style) -> bool:
    """Whether a style is clearly more prominent than another."""
    if abs(one[0] - other[0]) > _SAME_SIZE * max(one[0], other[0]):
        return one[0] > other[0]
    return prominence((0.0, *one[1:])) > prominence((0.0, *other[1:]))


def _by_knowledge(members: Mapping[_Class, Sequence[int]], known: Mapping[int, int]) -> dict[_Class, int]:
    """Levels of classes of which at least one heading is known: the usual one."""
    found = {}
    for kind, positions in members.items():
        votes = Counter(known[at] for at in positions if at in known)
        if votes:
            found[kind] = votes.most_common(1)[0][0]
    return found


def _by_numbers(
    headings: Sequence[Group], members: Mapping[_Class, Sequence[int]], fixed: Mapping[_Class, int]
) -> dict[_Class, int]:
    """Levels of classes with numbers: one deeper for each value, from the level of the numbers with one value."""
    found = dict(fixed)
    parts = any(kind.kind == "part" for kind in members)
    bases = Counter(level - kind.depth for kind, level in fixed.items() if kind.kind in ("arabic", "letter"))
    base = bases.most_common(1)[0][0] if bases else int(parts)
    single = [kind for kind in members if kind.depth == 1 and kind.kind in ("arabic", "roman", "letter")]
    nested = _nested(headings, members, single)
    for kind in members:
        if kind in found or not kind.kind:
            continue
        if kind.kind == "part":
            found[kind] = 1
        elif kind in nested:
            found[kind] = base + nested[kind]
        elif kind.kind != "small letter":
            found[kind] = max(1, base + kind.depth)
    return found


def _nested(
    headings: Sequence[Group], members: Mapping[_Class, Sequence[int]], single: Sequence[_Class]
) -> dict[_Class, int]:
    """Depths of classes like I., A. and 1. of which some begin again inside others; empty if none does."""
    restarting = {
        kind: sum(number.values == (1,) for at in members[kind] if (number := headings[at].number)) > 1
        for kind in single
    }
    again = {
        kind.kind for kind, does in restarting.items() if does
    }  # one that occurs once begins again in another style
    restarting |= {kind: True for kind in single if len(members[kind]) == 1 and kind.kind in again}
    if not any(restarting.values()) or len(single) < 2:
        return {}
    depths: dict[_Class, int] = {}
    outer = 0
    for kind in sorted(single, key=lambda kind: (restarting[kind], *(-float(part) for part in prominence(kind.style)))):
        rare = not restarting[kind] or len(members[kind]) == 1
        same = max((depth for other, depth in depths.items() if other.style == kind.style and rare), default=None)
        outer = outer if same or not (restarting[kind] or not depths) else outer + 1
        depths[kind] = same or max(1, outer)
    return depths


def _by_style(members: Mapping[_Class, Sequence[int]], fixed: Mapping[_Class, int]) -> dict[_Class, int]:
    """Levels of all classes: those without numbers stand one below the least prominent of those that outrank them.

    What occurs once opens no level of its own if others are about as large: an abstract's heading is no parent of all
    sections.
    """
    found = dict(fixed)
    order = sorted(members, key=lambda kind: prominence(kind.style), reverse=True)
    often = [kind for kind in order if len(members[kind]) > 1]
    once = [kind for kind in order if len(members[kind]) == 1]
    for kind in (*often, *once):
        if kind in found:
            continue
        alike = [level for other, level in found.items() if _alike(other.style, kind.style)]
        if not alike and kind in once:
            near = [other for other in found if abs(other.style[0] - kind.style[0]) <= _ABOUT_AS_LARGE * kind.style[0]]
            same_weight = [other for other in near if other.style[1] == kind.style[1]] or near
            alike = [found[min(same_weight, key=lambda other: abs(other.style[0] - kind.style[0]))]] if near else []
        above = [level for other, level in found.items() if _outranks(other.style, kind.style)]
        numbered = [other.depth for other in found if other.kind and _alike(other.style, kind.style)]
        if not kind.kind and numbered and max(numbered) >= _DEEP:  # numbers end there: these stand below them
            alike = [1 + max(alike)]
        found[kind] = min(alike) if alike else 1 + max(above, default=0)
    return found


def _alike(one: Style, other: Style) -> bool:
    return not _outranks(one, other) and not _outranks(other, one)


def _without_jumps(found: Sequence[int]) -> list[int]:
    """Levels from 1, none more than one deeper than its parent's; equal levels stay equal below one parent."""
    result: list[int] = []
    open_levels: list[tuple[int, int]] = []  # levels as found and as given, from the outermost one
    for level in found:
        while open_levels and open_levels[-1][0] >= level:
            open_levels.pop()
        given = open_levels[-1][1] + 1 if open_levels else 1
        open_levels.append((level, given))
        result.append(min(given, MAX_LEVELS))
    return result
