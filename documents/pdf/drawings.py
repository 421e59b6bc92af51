"""Drawings of a page: clusters of paths, with the lines and areas that belong to them (axes, frames, bars)."""

from documents.pdf.clusters import around, groups
from documents.pdf.page import Box, Rule

REACH = 8.0  # points between parts of one drawing
TOUCH = 1.0  # points between lines and areas that hang together
SMALLEST = 30.0  # points of a side of a drawing that may own lines and areas; smaller ones are signs in a table's cells
FILLED_SHARE = 0.35  # of a frame's area that drawings fill if it is theirs rather than a table's


def cluster(strokes: list[Box]) -> list[Box]:
    """Boxes around parts that are near each other."""
    return [around([strokes[index] for index in group]) for group in groups(strokes, REACH)]


def take_in_frames(
    rules: list[Box], fills: list[Box], drawings: list[Box]
) -> tuple[tuple[Rule, ...], tuple[Box, ...], tuple[Box, ...]]:
    """Rules, fills and drawings, where lines and areas that belong to a drawing have become part of it.

    They do if they hang together in a frame that drawings fill to a good part, or lie within a drawing.
    """
    large = [box for box in drawings if min(box.right - box.left, box.bottom - box.top) >= SMALLEST]
    if large:
        frames, taken = [*rules, *fills], set()
        for group in groups(frames, TOUCH):
            frame = around([frames[index] for index in group])
            owners = [box for box in large if overlap(box, frame) >= 0.5 * min(area(box), area(frame))]
            if sum(overlap(box, frame) for box in owners) >= FILLED_SHARE * area(frame) or any(
                contains(box, frame) for box in large
            ):
                taken.update(group)
                drawings = [*drawings, frame]
        rules, fills = (
            [box for index, box in enumerate(boxes, first) if index not in taken]
            for boxes, first in ((rules, 0), (fills, len(rules)))
        )
        drawings = cluster(drawings)
    return tuple(map(Rule, rules)), tuple(fills), tuple(drawings)


def area(box: Box) -> float:
    """Square points."""
    return (box.right - box.left) * (box.bottom - box.top)


def contains(outer: Box, inner: Box, slack: float = 2.0) -> bool:
    """Whether a box lies within another one, up to `slack` points."""
    return (
        inner.left >= outer.left - slack
        and inner.right <= outer.right + slack
        and inner.top >= outer.top - slack
        and inner.bottom <= outer.bottom + slack
    )


def overlap(one: Box, other: Box) -> float:
    """Square points that two boxes share."""
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(width, 0.0) * max(height, 0.0)
