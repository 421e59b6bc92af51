"""Ruling lines of a page from the pieces they are drawn in: dashes, dots, a piece for each cell, double lines."""

from documents.pdf.clusters import around, runs
from documents.pdf.page import Box

SAME_LINE = 2.5  # points between the two strokes of a double line; no row of text is as low
# points between pieces of a line, e.g. for a crossing line; table rules of neighbouring columns are further apart
GAP = 1.5
DASH = 8.0  # points: pieces up to this long are dashes,
DASH_GAP = 6.0  # which may be as far apart as this
SHORTEST = 4.0  # points


def merge_rules(pieces: list[Box]) -> list[Box]:
    """Horizontal and vertical lines, each as one box, sorted from the top and from the left.

    Args:
        pieces: Thin upright boxes, as drawn.
    """
    horizontal = [box for box in pieces if box.width >= box.height]
    vertical = [turned(box) for box in pieces if box.width < box.height]
    merged = [*_merge_horizontal(horizontal), *map(turned, _merge_horizontal(vertical))]
    return sorted(merged, key=lambda box: (box.top, box.left))


def turned(box: Box) -> Box:
    """A box with its axes swapped, so that vertical things are treated as horizontal ones."""
    return Box(box.top, box.left, box.bottom, box.right)


def _merge_horizontal(pieces: list[Box]) -> list[Box]:
    merged: list[Box] = []
    from_top = sorted(pieces, key=lambda box: box.middle)
    for line in runs(from_top, lambda line, piece: piece.middle - line[0].middle <= SAME_LINE):
        line.sort(key=lambda box: box.left)
        current, last = line[0], line[0]
        for piece in line[1:]:
            both_dashes = max(last.width, piece.width) <= DASH
            if piece.left - current.right <= (DASH_GAP if both_dashes else GAP):
                current = around([current, piece])
            else:
                merged.append(current)
                current = piece
            last = piece
        merged.append(current)
    return [box for box in merged if box.width >= SHORTEST]
