"""Paragraphs of the library's manuals: their styles, and on which page each was drawn."""

from reportlab.lib.colors import HexColor, black
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Paragraph

from documents.manuals.manual import ManualBlock
from documents.manuals.styles import ManualStyle

HEADS = ((1.5, 1.6), (1.2, 1.2), (1.05, 0.9))  # size of headings by level and room above, relative to the text


class PlacedParagraph(Paragraph):
    """A paragraph that notes on which page it begins."""

    block: ManualBlock | None = None
    row = 0

    def split(self, width: float, height: float) -> list:
        """No parts if the block is to stay whole; only the first part notes its page."""
        if self.block is not None and self.block.whole:
            return []
        parts = super().split(width, height)
        if parts:
            parts[0].block, parts[0].row = self.block, self.row
        return parts

    def draw(self) -> None:
        """Draw and note the page, unless it is noted: the header of a table is drawn on each of its pages."""
        if self.block is not None and not self.block.pages[self.row]:
            self.block.pages[self.row] = self.canv.getPageNumber()
        super().draw()


class ParagraphStyles:
    """Styles of all kinds of paragraphs of a house style."""

    def __init__(self, style: ManualStyle) -> None:
        regular, bold, heading = style.fonts
        size, aligned = style.size, TA_JUSTIFY if style.justified else 0
        self.text = ParagraphStyle(
            "text", fontName=regular, fontSize=size, leading=1.28 * size, alignment=aligned, spaceAfter=0.6 * size
        )
        self.bold = ParagraphStyle("bold", self.text, fontName=bold, alignment=0)
        box = {"borderWidth": 1, "borderColor": black, "borderPadding": 5, "leftIndent": 6, "rightIndent": 6}
        self.warning = ParagraphStyle("warning", self.bold, spaceBefore=9, spaceAfter=12, **box)
        bullet = {"bulletIndent": 2, "bulletFontName": regular, "bulletFontSize": size}
        self.step = ParagraphStyle("step", self.text, leftIndent=16, spaceAfter=0.25 * size, **bullet)
        self.cell = ParagraphStyle(
            "cell", self.text, fontSize=0.9 * size, leading=1.1 * size, spaceAfter=0, alignment=0
        )
        self.cell_head = ParagraphStyle("cell head", self.cell, fontName=bold)
        self.caption = ParagraphStyle("caption", self.bold, fontSize=0.88 * size, spaceBefore=4, spaceAfter=4)
        self.under = ParagraphStyle("under", self.caption, alignment=TA_CENTER, spaceAfter=10)
        color = HexColor(style.color)
        head = ParagraphStyle("head", fontName=heading, spaceAfter=0.5 * size, keepWithNext=1, textColor=color)
        self.heads = [
            ParagraphStyle("head", head, fontSize=share * size, leading=1.2 * share * size, spaceBefore=before * size)
            for share, before in HEADS
        ]
