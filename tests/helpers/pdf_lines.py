"""Lines of PDF pages for tests, as if a file had been read: text, place and style."""

from typing import Any

from documents.pdf.lines import Line
from documents.pdf.page import Box, PageWord

LEADING = 12.0  # points between lines of the text
WIDTH = 5.0  # of a character, points


def box_of(text: str, left: float, baseline: float, size: float) -> Box:
    """Of characters that are half as wide as high."""
    return Box(left, baseline - 0.8 * size, left + 0.5 * size * len(text), baseline + 0.2 * size)


def word(text: str, left: float, baseline: float, size: float = 10.0, **style: Any) -> PageWord:
    """A word."""
    style = {"font": "Times", "bold": False, "italic": False} | style
    return PageWord(text, box_of(text, left, baseline, size), size, **style)


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
    values: dict[str, Any] = {"page": 1, "font": "Times", "cell": 0.5 * size} | given
    edges = {"left": values.pop("column_left", 50.0), "right": values.pop("column_right", 350.0)}
    return Line(text, box_of(text, left, baseline, size), size=size, **edges, **values)


FULL = "The pump moves the water through the housing while the motor"


def prose(baseline: float, count: int, text: str = FULL, **given: Any) -> list[Line]:
    """Full lines of text below each other."""
    return [line(text, baseline + LEADING * at, **given) for at in range(count)]


NUMBERS: dict[str, tuple[str, type]] = {"x": ("left", float), "p": ("pieces", int), "l": ("lead", int)}
STYLES: dict[str, dict[str, Any]] = {
    "b": {"bold": True},
    "i": {"italic": True},
    "m": {"monospaced": True, "font": "Courier"},
    "c": {"color": (0, 0, 90)},
    ">": {"left": 400.0, "column_left": 400.0, "column_right": 700.0},
}


def laid_out(script: str) -> list[Line]:
    """Lines of pages from a script.

    Its rows, each below the one before::

        page                  a new page
        text 3 8 x60          lines of running text: how many, style and place
        14 b | Housing        a line of text, 12 points below the one before, or as far as `+18` says, or at `y100`
        h 14 b | Housing      a heading: 24 points below the text, and 18 above what follows
        # 14 b | Housing      the same with four lines of text below it

    Style and place: a size, b(old), i(talic), m(onospaced), c(olored), `x60` from the left, `p3` pieces, `l9`
    characters of a bold lead, `>` in a second column. The text `~` is a full line.
    """
    found: list[Line] = []
    baseline, page = 60.0, 1
    for row in filter(str.strip, script.splitlines()):
        style, bar, text = row.partition("|")
        kind, *given = [*style.split(), ""]
        if kind not in ("page", "text", "h", "#"):
            kind, given = "", style.split()
        if kind == "page":
            baseline, page = 60.0, page + 1
            continue
        count = int(given.pop(0)) if kind == "text" else 1
        options: dict[str, Any] = {"page": page}
        above = 24.0 if kind in ("h", "#") else LEADING
        for one in filter(None, given):
            if one[0] == "+":
                above = float(one[1:])
            elif one[0] == "y":
                baseline, above = float(one[1:]), 0.0
            elif one[0] in NUMBERS:
                name, kind_of = NUMBERS[one[0]]
                options[name] = kind_of(one[1:])
            else:
                options |= STYLES.get(one[0]) or {"size": float(one)}
        options |= {"text": text.strip(" ")} if bar and text != " ~" else {}
        found += prose(baseline + above, count, **options)
        baseline = found[-1].baseline + (6 if kind in ("h", "#") else 0)
        if kind == "#":
            found += prose(baseline + LEADING, 4, page=page)
            baseline = found[-1].baseline
    return found
