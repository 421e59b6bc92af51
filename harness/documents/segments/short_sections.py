"""Short sections are read together.

Neighbours under one heading become one text, with their own headings as lines in it.

A section of a few lines is a poor segment: its text says little beside its path, and k segments of that size fill a
tenth of the context.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from common.documents import PATH_SEPARATOR, Block, Paragraph
from harness.documents.segments.sections import Section
from harness.documents.segments.splitting import word_count


def grouped(sections: Sequence[Section], least_words: int, most_words: int) -> list[list[Section]]:
    """The sections in groups of neighbours of which one is short; most groups are one section.

    Those of a group share at least one heading, so that chapters stay apart; tables and images do not count.

    Args:
        sections: In reading order.
        least_words: A section or a group with fewer words is joined with the next; 0 joins none.
        most_words: A group has at most so many words, its headings not counted.
    """
    groups: list[list[Section]] = []
    shared: tuple[str, ...] = ()  # headings of the last group
    held = 0  # its words
    for section in sections:
        words = _words(section)
        common = _common(shared, section.headings) if groups else ()
        if common and held + words <= most_words and min(held, words) < least_words:
            groups[-1].append(section)
            shared, held = common, held + words
        else:
            groups.append([section])
            shared, held = section.headings, words
    return groups


def as_one(group: Sequence[Section]) -> Section:
    """A group as one section under the headings that all share.

    Every other heading stands as a paragraph before its text.
    """
    if len(group) == 1:
        return group[0]
    headings = group[0].headings
    for section in group[1:]:
        headings = _common(headings, section.headings)
    blocks = [block for section in group for block in _with_heading(section, len(headings))]
    return replace(group[0], headings=headings, blocks=blocks)


def _words(section: Section) -> int:
    return sum(word_count(block.text) for block in section.blocks if isinstance(block, Paragraph))


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The headings that both begin with."""
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def _with_heading(section: Section, above: int) -> Iterator[Block]:
    inner = section.headings[above:]
    if inner and (section.blocks or section.is_leaf):
        yield Paragraph(PATH_SEPARATOR.join(inner), section.page)
    yield from section.blocks
