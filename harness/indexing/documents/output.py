"""Parses a language model's conversion of a window.

Headings with levels by their numbers, padding taken out, pages given back, garbled text detected.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from documents.fidelity import fidelity, words
from documents.markdown_writing import block_markdown
from documents.reading.markdown_reading import parse_blocks
from documents.records import MAX_LEVELS, Block, Heading, Image
from harness.indexing.documents.windows import Window, plain

_FENCE = re.compile(r"\s*```(?:markdown|md)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_NUMBER = re.compile(
    r"(?i:chapter|section|part|appendix|annex|kapitel|anhang|chapitre)\s+(?P<named>(?:\d{1,3}|[A-Z])(?:\.\d{1,3})*)\b"
    r"|(?P<plain>\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})+)\.?(?=\s)"
)
_RUN = 3  # words in a row by which a block is found in the source
# Shares beyond which a conversion counts as garbled: of the source's words that it loses, of its words that it invents,
# and of the source's pairs of neighbouring words that it loses, as it does when it mixes up the text.
_MAX_LOST, _MAX_INVENTED, _MAX_TORN = 0.1, 0.1, 0.3


def converted(reply: str, window: Window) -> list[Block]:
    """The blocks of a reply.

    Args:
        reply: Markdown.
        window: What was to be converted.

    Raises:
        ValueError: If the reply is garbled; says how.
    """
    if fenced := _FENCE.fullmatch(reply):
        reply = fenced[1]
    files = {f"images/{block.file}": block.data for block in window.blocks if isinstance(block, Image)}
    blocks = [_levelled(block) for block in parse_blocks(reply, files.get)]
    blocks = _with_all_images(_own(blocks, window), window)
    source = plain(window.blocks)
    printed = f" {' '.join(words(source))} "
    result = "\n".join(" ".join(_words(block, printed)) for block in blocks)
    if not words(result) and words(source):
        raise ValueError("no text")
    single, pairs = fidelity(source, result), fidelity(source, result, in_a_row=2)
    if single.lost > _MAX_LOST:
        raise ValueError(f"{single.lost:.0%} of the words lost")
    if single.invented > _MAX_INVENTED:
        raise ValueError(f"{single.invented:.0%} of the words invented")
    if pairs.lost > _MAX_TORN:
        raise ValueError("the text mixed up")
    return _with_pages(blocks, window)


def blocks_markdown(blocks: Sequence[Block]) -> str:
    """Blocks as the model is asked to write them: headings of all levels with one mark."""
    return "\n\n".join(f"# {block.text}" if isinstance(block, Heading) else block_markdown(block) for block in blocks)


def _levelled(block: Block) -> Block:
    """A heading with the level that its number tells: 2.3 is on the second level.

    Without a number its marks tell it.
    """
    if isinstance(block, Heading) and (match := _NUMBER.match(f"{block.text} ")):
        return replace(block, level=min((match["named"] or match["plain"]).count(".") + 1, MAX_LEVELS))
    return block


def _own(blocks: Sequence[Block], window: Window) -> list[Block]:
    """The blocks without those at both ends that convert the padding."""
    own, before, after = (_runs(words(text)) for text in (plain(window.blocks), window.before, window.after))
    start, end = 0, len(blocks)
    while start < end and _is_of(blocks[start], before, own):
        start += 1
    while end > start and _is_of(blocks[end - 1], after, own):
        end -= 1
    return list(blocks[start:end])


def _is_of(block: Block, padding: Counter[tuple[str, ...]], own: Counter[tuple[str, ...]]) -> bool:
    """Whether a block is from the padding rather than from the window itself."""
    runs = _runs(_words(block))
    return (runs & padding).total() > (runs & own).total()


def _with_all_images(blocks: list[Block], window: Window) -> list[Block]:
    """The blocks with each image of the window once: repeated ones are left out, forgotten ones stand at the end."""
    given = {block.file: block for block in window.blocks if isinstance(block, Image)}
    made: dict[str | int, Block] = {}
    for place, block in enumerate((*blocks, *given.values())):
        key = block.file if isinstance(block, Image) else place
        made.setdefault(key, given.get(key, block) if isinstance(key, str) else block)
    return [*made.values()]


def _with_pages(blocks: Sequence[Block], window: Window) -> list[Block]:
    """The blocks, each with the page of the part of the source that shares most runs of words with it, in order."""
    sources = [_runs(_words(block)) for block in window.blocks]
    made: list[Block] = []
    place = 0
    for block in blocks:
        runs = _runs(_words(block))
        shared = [(runs & source).total() for source in sources[place:]]
        if shared and max(shared) > 0:
            place += shared.index(max(shared))
        made.append(replace(block, page=window.blocks[place].page))
    return made


def _words(block: Block, printed: str = "") -> list[str]:
    """The words of a block; of a heading without the number that the model may have added.

    Args:
        block: The block.
        printed: The words of the source between blanks; a number that stands there before the heading's first word
            stays.
    """
    text = plain([block])
    if isinstance(block, Heading) and (match := _NUMBER.match(f"{text} ")):
        title = words(text[match.end() :])
        if f" {' '.join([*words(match[0]), *title[:1]])} " not in printed:
            return title
    return words(text)


def _runs(of_text: Sequence[str]) -> Counter[tuple[str, ...]]:
    """All runs of one to `_RUN` words.

    Long runs tell where a text is from, single words count for headings of one word.
    """
    return Counter(
        tuple(of_text[start : start + length])
        for length in range(1, _RUN + 1)
        for start in range(len(of_text) - length + 1)
    )
