"""Blocks of a document in the order in which a reader of a format meets them.

Items of nested lists become the lines of one paragraph.
"""

from documents.markdown_writing import TABLE_CAPTION
from documents.normal_form import one_line
from documents.records import Block, Paragraph


class BlockBuilder:
    """Collects blocks.  What is no item stands between the lists before and behind it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.page: int | None = None
        self.depth = 0  # lists around
        self._lines: list[str] = []  # of the list that is being read
        self._item_open = False  # whether the last line can take more text
        self._item_empty = False  # whether it has none so far
        self._may_be_caption = False

    def open_list(self) -> None:
        """A list begins, within the open one if there is one."""
        self.depth += 1
        self._item_open = False

    def close_list(self) -> None:
        """The innermost list ends."""
        self.depth -= 1
        self._item_open = False

    def item(self, marker: str = "-") -> None:
        """An item begins.  `marker`: "-", or a number with a point."""
        self._lines.append(f"{'  ' * (max(self.depth, 1) - 1)}{marker} ")
        self._item_open = self._item_empty = True

    def prose(self, text: str, joint: str = " ", is_caption: bool = False) -> None:
        """A paragraph, or further text of the item that is open.

        Args:
            text: Blanks and line breaks do not count.
            joint: What joins the text to the text before it in the item.
            is_caption: Whether it is the caption of a table that follows; one that begins like "Table 2" is one anyway.
        """
        text = one_line(text)
        if not text:
            return
        if self._item_open:
            self._lines[-1] += text if self._item_empty else joint + text
            self._item_empty = False
            return
        self.add(Paragraph(text, self.page))
        self._may_be_caption = is_caption or TABLE_CAPTION.match(text) is not None

    def add(self, block: Block) -> None:
        """A block that is no text of an item."""
        self.end_list()
        self.blocks.append(block)
        self._may_be_caption = False

    def end_list(self) -> None:
        """What is read of a list becomes a paragraph; further items begin another one."""
        self._item_open = False
        if self._lines:
            self.blocks.append(Paragraph("\n".join(self._lines), self.page))
            self._lines = []
            self._may_be_caption = False

    def end_caption(self) -> None:
        """The last paragraph is no caption of what follows."""
        self._may_be_caption = False

    def take_caption(self) -> str:
        """The paragraph just before, if it is a table's caption; it is then no paragraph any more."""
        if not self._may_be_caption or self._lines:
            return ""
        self._may_be_caption = False
        caption = self.blocks.pop()
        assert isinstance(caption, Paragraph)
        return caption.text
