"""What readers of true structures share: blocks in their order, levels from 1, rows of equal length."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from documents.records import Block, Heading, Paragraph


class TrueBlocks:
    """Collects the blocks of a source."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.text: list[str] = []  # of the paragraph that is being read

    def end(self) -> None:
        """What was read of a paragraph is all of it; one of dashes alone is none."""
        text = " ".join("".join(self.text).split())
        self.text = []
        if text.strip("- "):
            self.blocks.append(Paragraph(text))

    def add(self, block: Block) -> None:
        """A block that ends the paragraph before it."""
        self.end()
        self.blocks.append(block)


def from_level_one(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks, their highest headings with level 1."""
    blocks = tuple(blocks)
    above = min((block.level for block in blocks if isinstance(block, Heading)), default=1) - 1
    return tuple(replace(block, level=block.level - above) if isinstance(block, Heading) else block for block in blocks)


def equally_long(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Rows of a table, the shorter ones filled with empty cells."""
    width = max(map(len, rows), default=0)
    return tuple((*row, *[""] * (width - len(row))) for row in rows)
