"""Sections of a document (HiQA, Algorithm 2): its blocks cut at the headings, each with the headings above it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from documents.records import Block, Heading


@dataclass
class Section:
    """What stands under one heading, up to the next heading of any level."""

    headings: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)
    page: int | None = None  # of the heading
    is_leaf: bool = True  # whether no heading stands below it


def sections(blocks: Iterable[Block]) -> list[Section]:
    """The sections in reading order; the first one holds what stands before all headings.

    A level may be skipped: a heading belongs to the nearest one before it that is higher. Headings with the same text
    are different sections.
    """
    found = [Section(())]
    around: list[tuple[int, str]] = []  # level and text of the headings that hold the current place
    for block in blocks:
        if not isinstance(block, Heading):
            found[-1].blocks.append(block)
            continue
        while around and around[-1][0] >= block.level:
            around.pop()
        if around and found[-1].headings == tuple(text for _, text in around):
            found[-1].is_leaf = False
        around.append((block.level, block.text))
        found.append(Section(tuple(text for _, text in around), page=block.page))
    return found
