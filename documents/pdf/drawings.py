"""Drawings of a page: clusters of paths, with the lines and areas that belong to them (axes, frames, bars)."""

from documents.pdf.clusters import around, groups, joined
from documents.pdf.page import Box, Rule

REACH = 8.0  # points between parts of one drawing
TOUCH = 1.0  # points between lines and areas that hang together
SMALLEST = 30.0  # points of a side of a drawing that may own lines and areas; smaller ones are signs in a table's cells
FILLED_SHARE = 0.35  # of a frame's area that drawings fill if it is theirs rather than a table's


def take_in_frames(
    rules: list[Box], fills: list[Box], drawings: list[Box]
) -> tuple[tuple[Rule, ...], tuple[Box, ...], tuple[Box, ...]]:
    """Rules, fills and drawings, where lines and areas that belong to a drawing have become part of it.

    They do if they hang together in a frame that drawings fill to a good part, or lie within a drawing.
    """
    large = [box for box in drawings if min(box.width, box.height) >= SMALLEST]
    if large:
        frames, taken = [*rules, *fills], set()
        for group in groups(frames, TOUCH):
            frame = around(frames[index] for index in group)
            shared = [box.overlap(frame) for box in large if box.overlap(frame) >= 0.5 * min(box.area, frame.area)]
            if sum(shared) >= FILLED_SHARE * frame.area or any(box.contains(frame) for box in large):
                taken.update(group)
                drawings = [*drawings, frame]
        rules, fills = (
            [box for index, box in enumerate(boxes, first) if index not in taken]
            for boxes, first in ((rules, 0), (fills, len(rules)))
        )
        drawings = joined(drawings, REACH)
    return tuple(map(Rule, rules)), tuple(fills), tuple(drawings)
