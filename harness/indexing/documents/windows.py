"""Windows over the text of a document (HiQA, Algorithm 1).

About W words each, with K words of padding at both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from documents.markdown_writing import block_markdown
from documents.records import Block, Document, Heading, Image, Paragraph, Table
from documents.segments.splitting import pieces, split_table, word_count, word_spans


@dataclass(frozen=True, slots=True)
class Part:
    """A block, or a part of one that is longer than a window, as a model is shown it."""

    block: Block
    text: str  # a heading without mark, as in a document that is not yet converted


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring parts."""

    parts: tuple[Part, ...]
    before: str  # the padding
    after: str

    @property
    def text(self) -> str:
        """The text that is to be converted."""
        return "\n\n".join(part.text for part in self.parts)

    @property
    def blocks(self) -> list[Block]:
        """The offline reading of this text."""
        return [part.block for part in self.parts]


def windows(document: Document, window_words: int, padding_words: int) -> list[Window]:
    """The windows of a document.

    Each begins and ends with a block, so that none tears a sentence or a table that is shorter than a window.

    Args:
        document: In normal form.
        window_words: W; at most so many words, but for a longer table row, and headings, which go with the text below
            them.
        padding_words: K.
    """
    parts = [part for block in document.blocks for part in _parts(block, window_words)]
    groups: list[list[Part]] = []
    held = 0
    for part in parts:
        words = word_count(part.text)
        if not groups or held + words > window_words:
            groups.append(_headings_at_end(groups[-1]) if groups else [])
            held = sum(word_count(heading.text) for heading in groups[-1])
        groups[-1].append(part)
        held += words
    texts = ["\n\n".join(part.text for part in group) for group in groups]
    return [
        Window(
            tuple(group),
            last_words("\n\n".join(texts[:place][-2:]), padding_words),
            first_words("\n\n".join(texts[place + 1 :][:2]), padding_words),
        )
        for place, group in enumerate(groups)
    ]


def _headings_at_end(group: list[Part]) -> list[Part]:
    """Take the headings off the end of a group that holds more than headings."""
    count = next((place for place, part in enumerate(reversed(group)) if not isinstance(part.block, Heading)), 0)
    taken = group[len(group) - count :]
    del group[len(group) - count :]
    return taken


def last_words(text: str, count: int) -> str:
    """The end of a text, with its line breaks."""
    spans = word_spans(text)
    return text[spans[-count][0] :] if 0 < count <= len(spans) else text if count else ""


def first_words(text: str, count: int) -> str:
    """The beginning of a text, with its line breaks."""
    spans = word_spans(text)
    return text[: spans[count - 1][1]] if 0 < count <= len(spans) else text if count else ""


def plain(blocks: Sequence[Block]) -> str:
    """The words of blocks, without marks: what a conversion must keep."""
    lines: list[str] = []
    for block in blocks:
        match block:
            case Heading() | Paragraph():
                lines.append(block.text)
            case Table():
                lines += [block.caption, *(cell for row in block.rows for cell in row)]
            case Image():
                lines.append(block.caption)
    return "\n".join(lines)


def _parts(block: Block, max_words: int) -> list[Part]:
    match block:
        case Heading():
            return [Part(block, block.text)]
        case Paragraph():
            made = [Paragraph(piece.text, piece.page, block.code) for piece in pieces(block, max_words)]
            return [Part(each, block_markdown(each)) for each in made]
        case Table():
            return [Part(each, block_markdown(each)) for each in split_table(block, max_words)]
        case Image():
            return [Part(block, block_markdown(block))]
