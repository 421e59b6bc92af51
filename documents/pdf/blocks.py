"""Blocks of a document from what stands on its pages: headings, paragraphs, tables and images in reading order."""

from collections.abc import Container, Mapping, Sequence

from documents.left_out import LeftOut
from documents.pdf.footnotes import begins_note
from documents.pdf.headings import FoundHeading
from documents.pdf.hyphenation import vocabulary
from documents.pdf.lines import Line, Placed
from documents.pdf.list_items import item_mark
from documents.pdf.paragraphs import Open, goes_on, is_code, paragraph_of
from documents.pdf.spacing import Body
from documents.records import Block, Heading, Paragraph


class _Writer:
    """Writes blocks; keeps what stands inside a paragraph (footnotes, tables, images) until that ends."""

    def __init__(self, body: Body, words: Container[str], left_out: LeftOut) -> None:
        self.blocks: list[Block] = []
        self._body = body
        self._words = words
        self._left_out = left_out
        self._open: Open | None = None
        self._waiting: list[Block | Open] = []  # an open paragraph is a footnote
        self._in_list = False

    def line(self, line: Line) -> None:
        """Add a line to the open paragraph, or to a new one."""
        if self._open is None or not goes_on(self._open, line, self._body, in_list=self._in_list):
            self.close()
            self._open = Open(code=is_code(line, self._body))
        self._open.lines.append(line)

    def aside(self, block: Block) -> None:
        """Add a block that does not end the paragraph around it."""
        self._waiting.append(block)

    def note(self, line: Line) -> None:
        """Add a line of a footnote, or one beside the text; it stands behind the paragraph around it."""
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, Open) and _is_one_note(last.last, line):
            last.lines.append(line)
        else:
            self._waiting.append(Open([line]))

    def close(self) -> None:
        """End the open paragraph, and write what stands inside it."""
        if self._open is not None:
            self._add(paragraph_of(self._open, self._words, self._left_out))
            self._open = None
        for part in self._waiting:
            if isinstance(part, Open):
                note = paragraph_of(part, self._words, self._left_out)
                if not part.last.is_aside:
                    self._left_out.text("footnotes put behind their paragraphs", note.text)
                self._add(note)
            else:
                self._add(part)
        self._waiting.clear()

    def _add(self, block: Block) -> None:
        """Add a block; a list's items are one paragraph, and a table goes on with the last if both have one head."""
        item = isinstance(block, Paragraph) and not block.code and item_mark(block.text) is not None
        before = self.blocks[-1] if self.blocks else None
        if item and self._in_list and isinstance(before, Paragraph) and isinstance(block, Paragraph):
            self.blocks[-1] = Paragraph(f"{before.text}\n{block.text}", before.page)
        else:
            self.blocks.append(block)
        self._in_list = item


def _is_one_note(last: Line, line: Line) -> bool:
    if line.beside == last.beside == "margin":
        return (last.left, last.right, last.page) == (line.left, line.right, line.page)
    return last.beside == line.beside and last.upright and line.upright and not begins_note(line)


def blocks(
    items: Sequence[Line | Placed],
    headings: Sequence[FoundHeading],
    notes: Container[int],
    left_out: Container[int],
    body: Body,
    moved: LeftOut,
) -> list[Block]:
    """Blocks in reading order.

    Args:
        items: What stands on the pages.
        headings: Which of them are headings.
        notes: Which are footnotes.
        left_out: Which are neither text nor headings: the title and the table of contents.
        body: The style of the document's text.
        moved: Gets the notes, which stand behind their paragraph, and the hyphens that are left out.
    """
    words = vocabulary(item.text for item in items if isinstance(item, Line))
    writer = _Writer(body, words, moved)
    starts: Mapping[int, FoundHeading] = {found.first: found for found in headings}
    end = -1  # of the heading that is being passed
    for at, item in enumerate(items):
        if at in starts:
            found = starts[at]
            writer.close()
            writer.aside(Heading(found.text, found.level, found.page))
            end = found.last
        if at <= end or at in left_out:
            continue
        if isinstance(item, Placed):
            writer.aside(item.content)
        elif item.is_aside or at in notes:
            writer.note(item)
        else:
            writer.line(item)
    writer.close()
    return writer.blocks
