"""Small PDF files for tests, drawn with reportlab."""

import io
from collections.abc import Callable, Sequence
from typing import Any

from reportlab.pdfgen.canvas import Canvas

SIZE = (400.0, 600.0)  # points
Draw = Callable[[Any], None]  # draws a page on a reportlab canvas: origin at the bottom left


def pdf(*pages: Draw, size: tuple[float, float] = SIZE, **options: Any) -> bytes:
    """A PDF file with one page for each function."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size, **options)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def text_page(rows: Sequence[tuple[float, float, str, str, float]]) -> Draw:
    """A page of texts: left, top of the baseline from the page's top, text, font, size."""

    def draw(canvas: Any) -> None:
        for left, baseline, text, font, size in rows:
            canvas.setFont(font, size)
            canvas.drawString(left, canvas._pagesize[1] - baseline, text)

    return draw


def both(*draws: Draw) -> Draw:
    """Several drawings on a page."""

    def draw(canvas: Any) -> None:
        for one in draws:
            one(canvas)

    return draw
