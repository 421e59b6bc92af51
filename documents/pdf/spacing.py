"""The style of a document's body, and the space above and below lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import mode

from documents.pdf.lines import Line, Placed

_FEW_LINES = 12  # of a document
_USUAL = 0.25  # of them in the text's style, at least


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
    looks = [Body(round(line.size, 1), line.font, line.bold, line.italic, line.monospaced) for line in lines]
    styles = Counter[Body]()
    for look, line in zip(looks, lines, strict=True):
        styles[look] += len(line.text)
    if not styles:
        return Body()
    body, _ = styles.most_common(1)[0]
    if len(lines) <= _FEW_LINES:  # whose headings may have more letters than the text
        usual = [style for style, times in Counter(looks).items() if times >= _USUAL * len(lines) and not style.bold]
        body = min(usual, key=lambda style: style.size, default=body)
    distances = [
        round((other.baseline - one.baseline) * 2) / 2
        for one, other in pairwise(lines)
        if one.page == other.page and round(one.size, 1) == round(other.size, 1) == body.size and one.left == other.left
    ]
    likely = [distance for distance in distances if 0.8 * body.size < distance < 2.5 * body.size]
    return replace(body, leading=mode(likely) if likely else 1.2 * body.size)


def space_above(items: Sequence[Line | Placed], at: int, body: Body) -> float:
    """Leadings of the body between the baselines of a line and the one before it in its column.

    Infinite at the column's top, below a table or image, and behind the last item.
    """
    if not 0 < at < len(items):
        return inf
    before, line = items[at - 1], items[at]
    if not isinstance(line, Line) or not isinstance(before, Line) or before.page != line.page:
        return inf
    distance = line.baseline - before.baseline
    return distance / body.leading if distance >= 0 else inf
