"""Notes in the margin: narrow blocks of lines beside a column of running text."""

from collections.abc import Iterable, Sequence

from documents.pdf.clusters import around
from documents.pdf.lines import Line

_EDGE = 0.15  # font sizes between the left edges of a note's lines
_LEADING = 1.6  # font sizes between a note's lines at most
_GAP = 0.8  # font sizes between a note and the text
_NARROW, _NARROW_EMS = 0.45, 14.0  # of the text's width, and in font sizes: what is wider is a column
_FILLED, _MOST = 0.85, 0.6  # of the text's width that a full line has; of the lines beside a note that are full
_LEVEL = 0.12  # font sizes between the baselines of a label and of its value
_MAX_PIECES = 1000  # of a page
_MIN_LETTERS, _MIN_LEVEL_LINES = 8, 3  # of a note; of one whose lines stand on those of the text


def margin_notes(pieces: Sequence[Line]) -> list[list[Line]]:
    """The lines of each note on a page, from its top; what is no clear note is in none.

    Args:
        pieces: Pieces of lines that run from left to right.
    """
    if len(pieces) > _MAX_PIECES:
        return []
    return [block for block in _blocks(pieces) if len(block) > 1 and _is_note(block, pieces)]


def _blocks(pieces: Iterable[Line]) -> list[list[Line]]:
    """Lines that follow each other below one left edge."""
    blocks: list[list[Line]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.baseline, piece.box)):
        above = (block for block in blocks if abs(block[0].box.left - piece.box.left) <= _EDGE * piece.size)
        block = max(above, key=lambda block: block[-1].baseline, default=None)
        if block and 0 < piece.baseline - block[-1].baseline <= _LEADING * piece.size:
            block.append(piece)
        else:
            blocks.append([piece])
    return blocks


def _is_note(block: Sequence[Line], pieces: Sequence[Line]) -> bool:
    """Whether lines are a note: narrow, clear of the text, and beside full lines of it."""
    box, size = around([line.box for line in block]), block[0].size
    if all(line.bold for line in block) or any(line.monospaced for line in block):  # a heading; code
        return False
    own = set(map(id, block))
    level = [piece for piece in pieces if piece.box.top < box.bottom and box.top < piece.box.bottom]
    beside = [piece for piece in level if id(piece) not in own]
    if len(beside) < 2 or sum(map(str.isalpha, "".join(line.text for line in block))) < _MIN_LETTERS:
        return False
    text = around([piece.box for piece in beside])
    if not (text.right < box.left - _GAP * size or box.right + _GAP * size < text.left):
        return False
    most = min(_NARROW * text.width, _NARROW_EMS * size)
    margin = [piece.box.width for piece in pieces if text.right <= piece.box.left or piece.box.right <= text.left]
    if max(margin) > most:  # another column
        return False
    full = sum(piece.box.width >= _FILLED * text.width for piece in beside)
    others = len(pieces) - len(margin) - len(beside)  # labels stand beside all of the text
    on_lines = all(any(abs(line.baseline - piece.baseline) <= _LEVEL * size for piece in beside) for line in block)
    is_clear = not on_lines or min(full, len(block), others) >= _MIN_LEVEL_LINES
    return is_clear and full >= _MOST * len(beside)
