"""What distinguishes text from its surroundings: the body's style, and the space above and below lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from documents.pdf.lines import Line, Placed


@dataclass(frozen=True, slots=True)
class Body:
    """The style of most of a document's text."""

    size: float = 10.0
    font: str = ""
    bold: bool = False
    italic: bool = False
    monospaced: bool = False
    leading: float = 12.0  # points between baselines


def body_of(lines: Sequence[Line]) -> Body:
    """The style of most characters."""
    styles = Counter[tuple[float, str, bool, bool, bool]]()
    for line in lines:
        styles[round(line.size, 1), line.font, line.bold, line.italic, line.monospaced] += len(line.text)
    if not styles:
        return Body()
    (size, font, bold, italic, monospaced), _ = styles.most_common(1)[0]
    distances = Counter[float]()
    for one, other in pairwise(lines):
        if one.page == other.page and round(one.size, 1) == round(other.size, 1) == size and one.left == other.left:
            distance = other.baseline - one.baseline
            if 0.8 * size < distance < 2.5 * size:
                distances[round(distance * 2) / 2] += 1
    leading = distances.most_common(1)[0][0] if distances else 1.2 * size
    return Body(size, font, bold, italic, monospaced, leading)


def space_above(items: Sequence[Line | Placed], at: int, body: Body) -> float:
    """Leadings of the body between the baselines of a line and the one before it in its column.

    Infinite at the column's top or below a table or image.
    """
    line, before = items[at], items[at - 1] if at else None
    if not isinstance(line, Line) or not isinstance(before, Line) or before.page != line.page:
        return inf
    distance = line.baseline - before.baseline
    return distance / body.leading if distance >= 0 else inf


def space_below(items: Sequence[Line | Placed], at: int, body: Body) -> float:
    """Leadings between a line and the one after it; infinite at the column's end or above a table or image."""
    return space_above(items, at + 1, body) if at + 1 < len(items) else inf
