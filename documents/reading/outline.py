"""The title of a document and the levels of its headings, from headings as a file has them."""

from collections.abc import Sequence
from dataclasses import replace

from documents.records import Block, Heading


def titled(blocks: Sequence[Block], title: str = "") -> tuple[str, list[Block]]:
    """The title, and the blocks with levels that begin at 1.

    Args:
        blocks: Of a file in which a first-level heading may be the title.
        title: The title, where the file names it; empty otherwise.

    Returns:
        The title, or the only first-level heading if none is given; that heading is no block any more.
    """
    first = [block for block in blocks if isinstance(block, Heading) and block.level == 1]
    left = list(blocks)
    shift = min((block.level for block in blocks if isinstance(block, Heading)), default=1) - 1
    if first and (first[0].text == title or (not title and len(first) == 1)):
        title = first[0].text
        left.remove(first[0])
        shift = int(len(first) == 1)
    return title, [
        replace(block, level=max(block.level - shift, 1)) if isinstance(block, Heading) else block for block in left
    ]
