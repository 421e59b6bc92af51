"""Captions of tables and figures, e.g. "Table 3: Ratings" or "Fig. 2. Wiring", above or below what they name."""

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from documents.pdf.clusters import around, fragments
from documents.pdf.page import Box, PageWord
from documents.pdf.table_lines import Line, cell_text, lines_of, words_outside

Kind = Literal["table", "figure"]

FARTHEST = 3.0  # font sizes between a caption and what it names
FARTHEST_OF_FIGURE = 5.0  # the same where nothing is written between: drawings have white margins
LINE_GAP = 0.65  # font sizes between lines of a caption
GUTTER = 1.2  # font sizes between words of different columns of a page
SAME_SIZE = 0.6  # points that the font sizes of a caption's lines differ by at most
OVERLAP = 0.5  # of the narrower one's width that a caption and what it names share
MAX_LINES = 15

_NUMBER = r"(?:[A-Z]{0,2}[-.]?\d+(?:[-.–]\d+)*[a-z]?|[IVXLC]+)"  # 3, A.1, 2-4, IV  # noqa: RUF001
_NAMES: dict[Kind, str] = {
    "table": r"table|tab\.|tabelle|tableau|tabla|tabella|tabela",
    "figure": r"figure|fig\.|abbildung|abb\.|figura|bild|picture|chart|diagram|scheme",
}
_STARTS = {
    kind: re.compile(rf"(?i:{names})\s*{_NUMBER}\s*(?P<mark>[.:—–|)]|-(?=\s)|$)?\s*(?P<rest>.*)")  # noqa: RUF001
    for kind, names in _NAMES.items()
}


class Caption(NamedTuple):
    """A caption as one line of text, and where it stands."""

    text: str
    box: Box


def assign_captions(kind: Kind, boxes: Sequence[Box], words: Sequence[PageWord]) -> list[Caption | None]:
    """The caption of each table or figure, the nearest ones first; a caption names one thing only.

    Args:
        kind: What the captions name.
        boxes: Where the tables or figures are.
        words: Of the page; those in `boxes` are no captions.
    """
    found: list[Caption | None] = [None] * len(boxes)
    pieces = [
        (around(word.box for word in part), part)
        for line in lines_of(words_outside(words, boxes))
        for part in fragments(line, GUTTER)
    ]
    starts = [index for index, (_, part) in enumerate(pieces) if is_caption_start(kind, part)] if boxes else []
    near: list[tuple[float, int, Caption]] = []
    for start in starts:
        caption, size = _caption(pieces, start, starts, boxes), pieces[start][1][0].size
        for index, box in enumerate(boxes):
            far = kind == "figure" and _nothing_between(caption.box, box, pieces)
            distance = _distance(caption.box, box)
            if distance <= (FARTHEST_OF_FIGURE if far else FARTHEST) * size:
                near.append((distance, index, caption))
    for _, index, caption in sorted(near):
        if found[index] is None and caption not in found:
            found[index] = caption
    return found


def is_caption_start(kind: Kind, part: Line) -> bool:
    """Whether words begin a caption; "Table 3 shows" begins a sentence."""
    match = _STARTS[kind].match(" ".join(word.text for word in part))
    if not match:
        return False
    rest = match["rest"]
    return match["mark"] is not None or not rest or rest[0].isupper() or (part[0].bold and not part[-1].bold)


def _caption(pieces: Sequence[tuple[Box, Line]], start: int, starts: Collection[int], boxes: Sequence[Box]) -> Caption:
    """The caption that begins with a piece, with the lines below that go on with it."""
    taken = [start]
    size = pieces[start][1][0].size
    for index in range(start + 1, len(pieces)):
        box, part = pieces[index]
        last = pieces[taken[-1]][0]
        if box.top - last.bottom > LINE_GAP * size or len(taken) == MAX_LINES:
            break
        block = around(pieces[number][0] for number in taken)
        if (
            index not in starts
            and abs(part[0].size - size) <= SAME_SIZE
            and box.top > last.top + 0.5 * size
            and _shared_width(box, block) >= OVERLAP
            and not any(
                other.top <= box.top and last.bottom <= other.top for other in boxes if _shared_width(other, box)
            )
        ):
            taken.append(index)
    text = cell_text(word for index in taken for word in pieces[index][1])
    return Caption(text, around(pieces[index][0] for index in taken))


def _distance(caption: Box, box: Box) -> float:
    """Points between a caption and what stands above or below it; infinite for what stands elsewhere."""
    if _shared_width(caption, box) < OVERLAP:
        return float("inf")
    gap = max(box.top - caption.bottom, caption.top - box.bottom)
    return max(gap, 0.0) if gap > -5 else float("inf")


def _nothing_between(caption: Box, box: Box, pieces: Sequence[tuple[Box, Line]]) -> bool:
    """Whether nothing is written between a caption and what stands above or below it."""
    top, bottom = min(caption.bottom, box.bottom), max(caption.top, box.top)
    return not any(top < piece.middle < bottom and _shared_width(piece, caption) > 0 for piece, _ in pieces)


def _shared_width(one: Box, other: Box) -> float:
    """How much of the narrower box's width is over or under the other one, from 0 to 1."""
    narrower = min(one.width, other.width)
    shared = min(one.right, other.right) - max(one.left, other.left)
    return max(shared, 0.0) / narrower if narrower > 0 else 0.0
