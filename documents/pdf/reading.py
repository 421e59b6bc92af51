"""Lines, tables and images of a page in reading order."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from documents.pdf.clusters import around
from documents.pdf.columns import ColumnPiece, reading_order
from documents.pdf.lines import Line, Placed
from documents.pdf.margin_notes import margin_notes

_WIDE_GAP = 2.0  # font sizes between pieces of a line that are apart: a label and its value, not a word and the next
_MIN_RUNNING = 6  # characters
_OVERLAP = 3.0  # points that pieces of one line may overlap


def read(pieces: Sequence[Line], placed: Sequence[Placed] = ()) -> list[Line | Placed]:
    """A page in reading order: pieces on one baseline of a column are joined to a line.

    The order of `pieces` does not count.

    Args:
        pieces: See `lines.page_lines`; those that do not run from left to right are read last.
        placed: Tables and images; the words in them must have been left out.
    """
    turned = [piece for piece in pieces if not piece.upright]
    level = [piece for piece in pieces if piece.upright]
    notes = margin_notes(level)
    of_notes = {id(line) for note in notes for line in note}
    level = [piece for piece in level if id(piece) not in of_notes]
    everything: list[Line | Placed] = [*sorted(level, key=lambda piece: (piece.box, piece.text)), *placed]
    if not everything:
        return [*turned]
    page = around([item.box for item in everything])
    found: list[Line | Placed] = []
    regions = reading_order(
        [ColumnPiece(item.box, running=not isinstance(item, Line) or _running(item)) for item in everything]
    )
    for region in regions:
        # What stands alone between columns is a title or a footer: its own width says nothing.
        edges = (page.left, page.right) if len(region.pieces) == 1 else (region.left, region.right)
        rows: list[list[Line] | Placed] = []
        for item in (everything[at] for at in region.pieces):
            row = rows[-1] if rows else None
            if isinstance(item, Placed):
                rows.append(item)
            elif isinstance(row, list) and all(_beside(other, item) for other in row):
                row.append(item)
            else:
                rows.append([item])
        found += [_joined(row, edges) if isinstance(row, list) else row for row in rows]
    for note in notes:
        _put(note, found)
    return [*found, *turned]


def _put(note: Sequence[Line], items: list[Line | Placed]) -> None:
    """Put a note from the margin behind the line beside which it begins."""
    box = around([line.box for line in note])
    beside = [at for at, item in enumerate(items) if item.box.top < note[0].box.bottom and item.box.bottom > box.top]
    at = max(beside, default=-1) + 1
    items[at:at] = [replace(line, left=box.left, right=box.right, beside="margin") for line in note]


def _running(piece: Line) -> bool:
    """Whether a piece may be of running text; code and formulas have gaps of their own."""
    return not piece.monospaced and len(piece.text) >= _MIN_RUNNING


def _beside(one: Line, other: Line) -> bool:
    """Whether two pieces are of one line: they overlap half their height, and stand beside each other."""
    if one.box.shared_height(other.box) <= 0.5 * min(one.box.height, other.box.height):
        return False
    return min(one.box.right, other.box.right) - max(one.box.left, other.box.left) < _OVERLAP


def _joined(row: list[Line], edges: tuple[float, float]) -> Line:
    """Pieces of one line as a line, in the style of its longest piece."""
    row.sort(key=lambda piece: (piece.box, piece.text))
    longest = max(row, key=lambda piece: len(piece.text))
    monospaced = all(piece.monospaced for piece in row)
    text, wide = row[0].text, 1
    for one, other in pairwise(row):
        gap = other.box.left - one.box.right
        wide += gap > _WIDE_GAP * longest.size
        blanks = max(1, round(gap / longest.cell)) if monospaced and longest.cell > 0 else 1
        text += " " * blanks + other.text
    return replace(
        longest,
        text=text,
        box=around([piece.box for piece in row]),
        left=edges[0],
        right=edges[1],
        bold=longest.bold and all(piece.bold or piece.monospaced or len(piece.text) < 3 for piece in row),
        monospaced=monospaced,
        pieces=wide,
        lead=0 if longest.bold or monospaced else len(row[0].text) if row[0].bold else row[0].lead,
    )
