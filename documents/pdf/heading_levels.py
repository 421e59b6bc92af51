"""Levels of headings, from what is known of some, their numbers and their styles."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import mode
from typing import NamedTuple

from documents.pdf.heading_candidates import Group, Style
from documents.records import MAX_LEVELS

_SAME_SIZE = 0.03  # of a size
_ABOUT_AS_LARGE = 0.12


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
    told = defaultdict[_Class, list[int]](list)
    for at, level in known.items():
        told[classes[at]].append(level)
    found = {kind: mode(values) for kind, values in told.items()}
    _add_numbered(found, headings, classes)
    _add_by_style(found, Counter(classes))
    return _without_jumps([known.get(at, found[kind]) for at, kind in enumerate(classes)])


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


def _add_numbered(found: dict[_Class, int], headings: Sequence[Group], classes: Sequence[_Class]) -> None:
    """Levels of classes with numbers: one deeper for each value, from the level of the numbers with one value."""
    bases = [level - kind.depth for kind, level in found.items() if kind.kind in ("arabic", "letter")]
    base = mode(bases) if bases else int(any(kind.kind == "part" for kind in classes))
    nested = _nested(headings, classes)
    for kind in classes:
        if kind.kind == "part":
            found.setdefault(kind, 1)
        elif kind.kind not in ("", "small letter"):
            found.setdefault(kind, max(1, base + nested.get(kind, kind.depth)))


def _nested(headings: Sequence[Group], classes: Sequence[_Class]) -> dict[_Class, int]:
    """Depths of classes like I., A. and 1. of which some begin again inside others.

    What begins again is one deeper than the heading that it first stands below.  A class that occurs once does so if
    others with its kind of number do.
    """
    begins = Counter(
        kind for kind, group in zip(classes, headings, strict=True) if group.number and group.number.values == (1,)
    )
    again = {kind for kind, times in begins.items() if times > 1}
    kinds, often = {kind.kind for kind in again}, Counter(classes)
    depths: dict[_Class, int] = {}
    outer = 0  # depth of the heading before
    for kind in classes:
        if kind.depth == 1 and kind.kind in ("arabic", "roman", "letter"):
            inside = kind in again or (often[kind] == 1 and kind.kind in kinds)
            outer = depths.setdefault(kind, outer + 1 if inside else 1)
    return depths


def _add_by_style(found: dict[_Class, int], often: Mapping[_Class, int]) -> None:
    """Levels of the other classes: one below the least prominent of those that outrank them.

    What occurs once opens no level of its own if others are about as large: an abstract's heading is no parent of all
    sections.
    """
    order = sorted(often, key=lambda kind: prominence(kind.style), reverse=True)
    for kind in sorted(order, key=lambda kind: often[kind] == 1):
        alike = [level for other, level in found.items() if _alike(other.style, kind.style)]
        if not alike and often[kind] == 1:
            near = [other for other in found if abs(other.style[0] - kind.style[0]) <= _ABOUT_AS_LARGE * kind.style[0]]
            near.sort(key=lambda other: (other.style[1] != kind.style[1], abs(other.style[0] - kind.style[0])))
            alike = [found[other] for other in near[:1]]
        above = [level for other, level in found.items() if _outranks(other.style, kind.style)]
        found.setdefault(kind, min(alike) if alike else 1 + max(above, default=0))


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
