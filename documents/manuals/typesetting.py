"""Typesets a manual of the library as a PDF with reportlab; the same manual gives the same bytes."""

import io
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from xml.sax.saxutils import escape

import reportlab
from reportlab.pdfbase.pdfmetrics import registerFont, registerFontFamily
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate

from documents.manuals.manual import Manual
from documents.manuals.story import Story
from documents.manuals.styles import STYLES, VERA, ManualStyle

VERA_FACES = ("Vera", "VeraBd", "VeraIt", "VeraBI")  # embedded fonts that come with reportlab
MARGIN, GAP = 56.0, 18.0  # points; around the text and between its columns
_PADDINGS = ("leftPadding", "bottomPadding", "rightPadding", "topPadding")


@dataclass(frozen=True, slots=True)
class Typeset:
    """A typeset manual."""

    pdf: bytes
    pages: list[list[int]]  # of every block, as `Block.pages`
    page_count: int


def typeset(manual: Manual) -> Typeset:
    """Typeset a manual.  Sets the pages of its blocks and `page_count`."""
    style = STYLES[manual.product.family.style]
    if VERA[0] in style.fonts:
        _register_vera()
    file = io.BytesIO()
    document = _Document(file, manual, style)
    story = Story(manual, style, document.column).flowables()
    document.multiBuild(story) if style.contents else document.build(story)
    manual.page_count = document.page
    return Typeset(file.getvalue(), [block.pages for block in manual.blocks], manual.page_count)


@cache
def _register_vera() -> None:
    folder = Path(reportlab.__file__).parent / "fonts"
    for name in VERA_FACES:
        registerFont(TTFont(name, folder / f"{name}.ttf"))
    registerFontFamily("Vera", *VERA_FACES)


class _Document(BaseDocTemplate):
    """Page templates, running headers, bookmarks and the table of contents."""

    def __init__(self, file: io.BytesIO, manual: Manual, style: ManualStyle) -> None:
        width, height = style.page
        title = (style.file_title or "").format(title=manual.title)
        super().__init__(
            file, pagesize=style.page, invariant=1, title=title or None, author=manual.product.family.maker
        )
        self.manual, self.look, self.chapter = manual, style, ""
        self.column = (width - 2 * MARGIN - (style.columns - 1) * GAP) / style.columns
        frame = partial(Frame, y1=MARGIN, height=height - 2 * MARGIN, **dict.fromkeys(_PADDINGS, 0))
        whole = frame(MARGIN, width=width - 2 * MARGIN, id="whole")
        columns = [frame(MARGIN + n * (self.column + GAP), width=self.column) for n in range(style.columns)]
        text = PageTemplate("text", columns, onPageEnd=self._header_and_footer)
        self.addPageTemplates([PageTemplate("title", whole), text])

    def beforeDocument(self) -> None:  # noqa: N802
        """Forget what the pass before this one noted."""
        self.chapter = ""
        for block in self.manual.blocks:
            block.pages = [0] * (len(block.rows) if block.kind in ("table", "steps") else 1)

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802
        """Tell the table of contents and the bookmarks about a heading."""
        block = getattr(flowable, "block", None)
        if block is None or block.kind != "heading":
            return
        if block.level == 1:
            self.chapter = block.text
        key = f"heading{self.manual.blocks.index(block)}"
        if self.look.contents and block.level < 3:
            self.notify("TOCEntry", (block.level - 1, escape(block.text), self.page))
        if self.look.bookmarks:
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(block.text, key, block.level - 1, closed=block.level > 1)

    def _header_and_footer(self, canvas: Canvas, document: BaseDocTemplate) -> None:
        width, height = self.look.page
        names = {"name": self.manual.product.name, "chapter": self.chapter, "page": canvas.getPageNumber()}
        names["kind"] = self.manual.title.removeprefix(self.manual.product.name).strip()
        canvas.saveState()
        canvas.setFont(self.look.fonts[0], 8)
        left, _, right = self.look.header.format(**names).partition("|")
        canvas.drawString(MARGIN, height - 36, left)
        canvas.drawRightString(width - MARGIN, height - 36, right)
        canvas.setLineWidth(0.4)
        canvas.line(MARGIN, height - 41, width - MARGIN, height - 41)
        canvas.drawCentredString(width / 2, 30, self.look.footer.format(**names))
        canvas.restoreState()
