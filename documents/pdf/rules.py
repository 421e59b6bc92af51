"""Ruling lines of a page from the pieces they are drawn in: dashes, dots, a piece for each cell, double lines."""

from itertools import groupby

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
    horizontal = [box for box in pieces if box.right - box.left >= box.bottom - box.top]
    vertical = [turned(box) for box in pieces if box.right - box.left < box.bottom - box.top]
    return sorted([*_merge_horizontal(horizontal), *map(turned, _merge_horizontal(vertical))], key=_from_top)


def turned(box: Box) -> Box:
    """A box with its axes swapped, so that vertical things are treated as horizontal ones."""
    return Box(box.top, box.left, box.bottom, box.right)


def _from_top(box: Box) -> tuple[float, float]:
    return box.top, box.left


def _merge_horizontal(pieces: list[Box]) -> list[Box]:
    merged: list[Box] = []
    for line in _lines(sorted(pieces, key=lambda box: box.top + box.bottom)):
        line.sort(key=lambda box: box.left)
        current, last = line[0], line[0]
        for piece in line[1:]:
            both_dashes = max(last.right - last.left, piece.right - piece.left) <= DASH
            if piece.left - current.right <= (DASH_GAP if both_dashes else GAP):
                top, bottom = min(current.top, piece.top), max(current.bottom, piece.bottom)
                current = Box(current.left, top, max(current.right, piece.right), bottom)
            else:
                merged.append(current)
                current = piece
            last = piece
        merged.append(current)
    return [box for box in merged if box.right - box.left >= SHORTEST]


def _lines(pieces: list[Box]) -> list[list[Box]]:
    """Pieces sorted by their height on the page, in groups no higher than a double line."""
    lines: list[list[Box]] = []
    first = 0.0
    for middle, same in groupby(pieces, key=lambda box: (box.top + box.bottom) / 2):
        if lines and middle - first <= SAME_LINE:
            lines[-1].extend(same)
        else:
            lines.append(list(same))
            first = middle
    return lines
