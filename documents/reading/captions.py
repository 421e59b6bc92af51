"""Captions that stand as paragraphs beside their tables and images."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from documents.markdown_writing import TABLE_CAPTION
from documents.records import Block, Image, Paragraph, Table


@dataclass(frozen=True, slots=True)
class CaptionPiece:
    """A block, and what its style says about it."""

    block: Block
    is_caption: bool = False
    is_list: bool = False


def with_captions(pieces: Sequence[CaptionPiece]) -> list[Block]:
    """The blocks, each caption given to the table or image beside it that has none.

    A paragraph is a caption by its style, or if it begins like "Table 2" and a table follows. A table is sought behind
    its caption first, an image before it. A caption without either stays a paragraph.
    """
    blocks = [piece.block for piece in pieces]
    used: set[int] = set()
    for place, piece in enumerate(pieces):
        if not isinstance(piece.block, Paragraph) or piece.block.code or piece.is_list:
            continue
        of_table = TABLE_CAPTION.match(piece.block.text) is not None
        if not piece.is_caption and not of_table:
            continue
        before, after = place - 1, place + 1
        sought: list[tuple[int, type]] = [(after, Table)]
        if piece.is_caption:
            sought += [(before, Table), (before, Image), (after, Image)]
            sought = sought if of_table else [sought[2], sought[0], sought[1], sought[3]]
        for neighbour, kind in sought:
            if 0 <= neighbour < len(blocks) and neighbour not in used:
                block = blocks[neighbour]
                if isinstance(block, kind) and isinstance(block, Table | Image) and not block.caption:
                    blocks[neighbour] = replace(block, caption=piece.block.text)
                    used.add(place)
                    break
    return [block for place, block in enumerate(blocks) if place not in used]
