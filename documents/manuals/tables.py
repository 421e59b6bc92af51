"""Tables of the library's manuals: looks, and widths of their columns."""

from collections.abc import Sequence

from reportlab.lib.colors import HexColor, black, white
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import Paragraph, Table, TableStyle

SHADE, HEAD_SHADE = HexColor("#f0f2f5"), HexColor("#d5dbe3")
PADDING = 14.0  # points; left and right of a cell's text, together with some air
LOOKS: dict[str, list[tuple]] = {
    "ruled": [("GRID", (0, 0), (-1, -1), 0.5, black)],
    "booktabs": [
        ("LINEABOVE", (0, 0), (-1, 0), 1, black),
        ("LINEBELOW", (0, 0), (-1, 0), 0.5, black),
        ("LINEBELOW", (0, -1), (-1, -1), 1, black),
    ],
    "shaded": [
        ("BACKGROUND", (0, 0), (-1, 0), HEAD_SHADE),
        ("ROWBACKGROUNDS", (0, 1), (-1, -1), [white, SHADE]),
    ],
}


def make_table(cells: list[list[Paragraph]], look: str, widths: Sequence[float]) -> Table:
    """A table whose header is repeated where it is broken over pages.

    Args:
        cells: By rows, the header first.
        look: A key of `LOOKS`.
        widths: Of the columns, points.
    """
    table = Table(cells, list(widths), repeatRows=1, hAlign="LEFT", spaceAfter=10)
    table.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), *LOOKS[look]]))
    return table


def column_widths(rows: Sequence[Sequence[str]], font: str, size: float, available: float) -> list[float]:
    """Widths of the columns, points: as wide as their cells need.

    If that is too much, narrowed down to their longest words.
    """
    columns = list(zip(*rows, strict=True))
    least = [max(stringWidth(word, font, size) for cell in each for word in cell.split()) + PADDING for each in columns]
    wanted = [max(stringWidth(cell, font, size) for cell in each) + PADDING for each in columns]
    over = max(0.0, sum(wanted) - available) / max(1.0, sum(wanted) - sum(least))
    return [want - over * (want - low) for low, want in zip(least, wanted, strict=True)]
