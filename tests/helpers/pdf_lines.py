"""Lines of PDF pages for tests, as if a file had been read: text, place and style."""

from typing import Any

from documents.pdf.lines import Line
from documents.pdf.page import Box, PageWord

LEADING = 12.0  # points between lines of the text
WIDTH = 5.0  # of a character, points


def word(text: str, left: float, baseline: float, size: float = 10.0, **style: Any) -> PageWord:
    """A word whose characters are half as wide as high."""
    box = Box(left, baseline - 0.8 * size, left + 0.5 * size * len(text), baseline + 0.2 * size)
    return PageWord(
        text, box, size, style.pop("font", "Times"), style.pop("bold", False), style.pop("italic", False), **style
    )


def words(text: str, left: float, baseline: float, size: float = 10.0, **style: Any) -> list[PageWord]:
    """Words of a line, a blank between them."""
    found = []
    for part in text.split(" "):
        if part:
            found.append(word(part, left, baseline, size, **style))
        left += 0.5 * size * (len(part) + 1)
    return found


def line(text: str, baseline: float, left: float = 50.0, size: float = 10.0, **given: Any) -> Line:
    """A line; its column runs from 50 to 350 unless other edges are given."""
    box = Box(left, baseline - 0.8 * size, left + 0.5 * size * len(text), baseline + 0.2 * size)
    values: dict[str, Any] = {"page": 1, "font": "Times", "cell": 0.5 * size} | given
    return Line(
        text, box, left=values.pop("column_left", 50.0), right=values.pop("column_right", 350.0), size=size, **values
    )


def prose(
    baseline: float,
    count: int,
    text: str = "The pump moves the water through the housing while the motor",
    **given: Any,
) -> list[Line]:
    """Full lines of text below each other."""
    return [line(text, baseline + LEADING * at, **given) for at in range(count)]
