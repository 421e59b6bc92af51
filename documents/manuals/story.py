"""Makes reportlab's flowables of a manual: its title page, its table of contents, its blocks."""

from random import Random
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import CondPageBreak, Flowable, KeepTogether, NextPageTemplate, PageBreak, Paragraph, Spacer
from reportlab.platypus.tableofcontents import TableOfContents

from documents.manuals.figures import draw
from documents.manuals.hyphenation import hyphenate
from documents.manuals.manual import Manual, ManualBlock
from documents.manuals.paragraphs import ParagraphStyles, PlacedParagraph
from documents.manuals.styles import ManualStyle
from documents.manuals.tables import column_widths, make_table

TABLE_ROOM = 170.0  # points that a heading, a caption and the first rows of a table need
ROWS_KEPT = 7  # a table with more rows may be broken over pages


class Story:
    """Makes flowables of a manual's blocks.

    Args:
        manual: The manual.
        style: Its style.
        column: Width of a column, points.
    """

    def __init__(self, manual: Manual, style: ManualStyle, column: float) -> None:
        self.manual, self.style, self.column = manual, style, column
        self.styles = ParagraphStyles(style)
        self.random = Random(manual.title)

    def flowables(self) -> list[Flowable]:
        """The title page, the table of contents if there is one, and the text."""
        story, after_heading = self._title_page(), False
        for place, block in enumerate(self.manual.blocks):
            if block.kind == "heading" and not after_heading and self._leads_to_table(place):
                story.append(CondPageBreak(TABLE_ROOM))
            story += self._flowables_of(block)
            after_heading = block.kind == "heading"
        return story

    def _leads_to_table(self, place: int) -> bool:
        """Whether headings from this place on are followed by a table."""
        return next(block.kind for block in self.manual.blocks[place:] if block.kind != "heading") == "table"

    def _title_page(self) -> list[Flowable]:
        product, heading = self.manual.product, self.style.fonts[2]
        big = ParagraphStyle("title", fontName=heading, fontSize=28, leading=34, textColor=HexColor(self.style.color))
        kind = ParagraphStyle("kind", big, fontSize=18, leading=24, spaceBefore=6)
        small = ParagraphStyle("small", self.styles.text, alignment=0)
        kind_text = self.manual.title.removeprefix(product.name).strip()
        number = self.random.randrange(100_000, 999_999)
        story = [Spacer(1, 150), Paragraph(product.name, big), Paragraph(kind_text, kind), Spacer(1, 240)]
        edition = f"Document {number}, edition {self.random.randrange(1, 13):02}/2025"
        story += [Paragraph(line, small) for line in (f"{product.family.maker} Ltd.", edition)]
        story += [NextPageTemplate("text"), PageBreak()]
        if self.style.contents:
            head = ParagraphStyle("contents", self.styles.heads[0], keepWithNext=0)
            contents = TableOfContents(dotsMinLevel=0)
            contents.levelStyles = [ParagraphStyle("toc", small, leftIndent=14 * n, spaceAfter=0) for n in (0, 1)]
            story += [Paragraph("Contents", head), contents, PageBreak()]
        return story

    def _paragraph(
        self, text: str, style: ParagraphStyle, block: ManualBlock, row: int = 0, **options: str
    ) -> PlacedParagraph:
        hyphens = self.style.hyphens and block.kind in ("paragraph", "steps")
        paragraph = PlacedParagraph(escape(hyphenate(text) if hyphens else text), style, **options)
        paragraph.block, paragraph.row = block, row
        return paragraph

    def _flowables_of(self, block: ManualBlock) -> list[Flowable]:
        match block.kind:
            case "steps":
                steps = enumerate(step for (step,) in block.rows)
                style = self.styles.step
                return [self._paragraph(step, style, block, row, bulletText=f"{row + 1}.") for row, step in steps]
            case "table":
                return self._table(block)
            case "figure":
                figure = draw(block, self.style, self.column, self.random)
                figure.hAlign = "CENTER"
                return [KeepTogether([Spacer(1, 4), figure, self._paragraph(block.text, self.styles.under, block)])]
            case kind:
                styles = {"heading": self.styles.heads[block.level - 1], "warning": self.styles.warning}
                return [self._paragraph(block.text, styles.get(kind, self.styles.text), block)]

    def _table(self, block: ManualBlock) -> list[Flowable]:
        """The table, which may go on on the next page if it is long, with its caption above."""
        text, head = self.styles.cell, self.styles.cell_head
        cells = [
            [self._paragraph(cell, text if row else head, block, row) for cell in cells]
            for row, cells in enumerate(block.rows)
        ]
        widths = column_widths(block.rows, head.fontName, head.fontSize, self.column)
        made = [Paragraph(escape(block.text), self.styles.caption), make_table(cells, self.style.tables, widths)]
        return [KeepTogether(made)] if len(cells) <= ROWS_KEPT else made
