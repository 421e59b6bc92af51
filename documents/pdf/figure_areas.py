"""Areas of a page that are figures.

Bitmaps and drawings near each other, with the lines, areas and labels that belong to them.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from documents.pdf.captions import GUTTER, Caption, assign_captions, is_caption_start
from documents.pdf.clusters import around, fragments, joined, runs
from documents.pdf.columns import rows
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.table_lines import Line, lines_of, words_in, words_outside

REACH = 10.0  # points between parts of one figure
FRAME_REACH = 4.0  # points between lines and areas that hang together
DIAGRAM_REACH = 25.0  # points between parts of a diagram of straight lines
LABEL_REACH = 5.0  # points between a drawing and what is written next to it
SIDEWAYS_REACH = 15.0  # points, for what is written sideways
LABEL_WORDS = 4  # in a label's line; a line of more words is running text
ROUNDS = 3  # of taking in labels: numbers at one axis, at the other one, then its name
# points of the longer side, square points; what is smaller and has no caption is an ornament
SMALLEST, SMALLEST_AREA = 24.0, 500.0
SMALLEST_FRAME = 16.0  # points of both sides
SMALLEST_DIAGRAM = 40.0
# times as large as the figure in it; in a larger frame the figure is an illustration in a box of text
ROOMIEST_FRAME = 2.5
PART_REACH = 20.0  # points between a part of a figure and its name, "(a) Before"
CENTERED = 0.1  # of its width that the middle of a row of pictures is from that of their caption
BACKGROUND_SHARE = 0.8  # of a page's area
PROSE_WORDS, PROSE_LINES = 6, 3  # as many lines of as many words are running text

_PART = re.compile(r"\(?[a-z]\)")


class FigureArea(NamedTuple):
    """Where a figure is."""

    box: Box  # without its caption
    bitmap: bool  # whether it is one bitmap and nothing else
    caption: Caption | None


def figure_areas(page: Page, taken: Sequence[Box]) -> list[FigureArea]:
    """The figures of a page, from the top.

    Args:
        page: The page.
        taken: Areas that are something else, e.g. tables.
    """
    bitmaps, drawings = (_free(boxes, page, taken) for boxes in (page.bitmaps, page.drawings))
    lines = _free([*(rule.box for rule in page.rules), *page.fills], page, taken)
    if not (bitmaps or drawings or lines):
        return []
    parts = joined([*bitmaps, *drawings], REACH)
    small = [box for box in parts if max(box.width, box.height) < SMALLEST]  # arrow heads, signs
    frames = [box for box in joined([*lines, *small], FRAME_REACH) if min(box.width, box.height) >= SMALLEST_FRAME]
    pictures = [_with_frames(box, frames) for box in parts if box not in small]
    alone = [frame for frame in frames if not any(frame.overlap(box) for box in pictures)]
    diagrams = [box for box in joined(alone, DIAGRAM_REACH) if min(box.width, box.height) >= SMALLEST_DIAGRAM]
    if not (pictures or diagrams):
        return []
    words = words_outside(page.words, taken)
    pieces = [part for line in lines_of(word for word in words if word.upright) for part in fragments(line, GUTTER)]
    pieces += _sideways(words)
    areas = [box if box in bitmaps else _with_labels(box, pieces) for box in [*pictures, *diagrams]]
    certain = [box for box in areas[: len(pictures)] if _stands_alone(box, bitmaps, words)]
    areas = _with_parts(areas, pieces)
    found = [
        FigureArea(box, box in bitmaps, caption)
        for box, caption in zip(areas, assign_captions("figure", areas, words), strict=True)
        if caption or any(box.contains(picture) for picture in certain)
    ]
    return sorted(found, key=lambda one: (one.box.top, one.box.left))


def _free(boxes: Sequence[Box], page: Page, taken: Sequence[Box]) -> list[Box]:
    """Boxes that are neither backgrounds nor in what is taken."""
    most = BACKGROUND_SHARE * page.width * page.height
    return [box for box in boxes if box.area < most and not any(_mostly_in(box, other) for other in taken)]


def _mostly_in(box: Box, other: Box) -> bool:
    return other.holds(box) and box.overlap(other) >= 0.5 * box.area


def _with_frames(box: Box, frames: Sequence[Box]) -> Box:
    own = (
        frame
        for frame in frames
        if _mostly_in(frame, box) or (_mostly_in(box, frame) and frame.area <= ROOMIEST_FRAME * box.area)
    )
    return around([box, *own])


def _with_parts(areas: Sequence[Box], pieces: Sequence[Line]) -> list[Box]:
    """Pictures with the captions of their parts, "(a) Before"; those in a row that share a caption as one."""
    labels = [around(word.box for word in piece) for piece in pieces if _PART.match(piece[0].text)]
    named = []
    for box in areas:
        below = box._replace(top=box.bottom, bottom=box.bottom + PART_REACH)
        named.append(around([box, *(label for label in labels if label.overlap(below) > 0)]))
    words = [word for piece in pieces for word in piece]
    own = assign_captions("figure", named, words)
    found = []
    for row in rows(dict(enumerate(named))):
        whole = around(named[index] for index in row)
        shared = assign_captions("figure", [whole], words)[0]
        if (
            len(row) > 1
            and shared
            and {own[index] for index in row} <= {None, shared}
            and abs(shared.box.center - whole.center) <= CENTERED * whole.width
        ):
            found.append(whole)
        else:
            found += [named[index] for index in row]
    return found


def _with_labels(box: Box, pieces: Sequence[Line]) -> Box:
    """A drawing with what is written in it and next to it."""
    for _ in range(ROUNDS):
        labels = []
        for piece in pieces:
            label = around(word.box for word in piece)
            reach = LABEL_REACH if all(word.upright for word in piece) else SIDEWAYS_REACH
            reached = Box(box.left - reach, box.top - reach, box.right + reach, box.bottom + reach)
            if label.overlap(reached) > 0 and _is_label(piece, label, box):
                labels.append(label)
        box = around([box, *labels])
    return box


def _sideways(words: Sequence[PageWord]) -> list[Line]:
    """What is set sideways: words that follow each other in the file above each other, with no wide gap."""

    def goes_on(run: Line, word: PageWord) -> bool:
        last = run[-1].box
        apart = max(word.box.top - last.bottom, last.top - word.box.bottom)
        beside = min(word.box.right, last.right) <= max(word.box.left, last.left)
        return not beside and apart <= GUTTER * word.size

    return runs((word for word in words if not word.upright), goes_on)


def _is_label(piece: Line, label: Box, box: Box) -> bool:
    if is_caption_start("figure", piece) or is_caption_start("table", piece):
        return False
    return _mostly_in(label, box) or len(piece) <= LABEL_WORDS


def _stands_alone(box: Box, bitmaps: Sequence[Box], words: Sequence[PageWord]) -> bool:
    """Whether a picture without a caption is one: large enough, and not a frame or a background of running text."""
    if max(box.width, box.height) < SMALLEST or box.area < SMALLEST_AREA or min(box.width, box.height) < SMALLEST_FRAME:
        return False
    if sum(bitmap.overlap(box) for bitmap in bitmaps) >= 0.5 * box.area:
        return True
    running = [
        line for line in lines_of(words_in(words, box)) if any(len(part) >= PROSE_WORDS for part in fragments(line))
    ]
    return len(running) < PROSE_LINES
