"""Windows over the text of a document (HiQA, Algorithm 1).

About W words each, with K words of padding at both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from documents.markdown_writing import block_markdown
from documents.records import Block, Document, Heading, Image, Paragraph, Table
from documents.segments.splitting import pieces, split_table, word_count, word_spans


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring blocks, or parts of one that is longer than a window."""

    blocks: list[Block]  # the offline reading
    before: str  # the padding
    after: str

    @property
    def text(self) -> str:
        """The text that is to be converted."""
        return _shown(self.blocks)


def windows(document: Document, window_words: int, padding_words: int) -> list[Window]:
    """The windows of a document.

    Each begins and ends with a block, so that none tears a sentence or a table that is shorter than a window.

    Args:
        document: In normal form.
        window_words: W; at most so many words, but for a longer table row, and headings, which go with the text below
            them.
        padding_words: K.
    """
    groups: list[list[Block]] = []
    held = 0
    for part in (part for block in document.blocks for part in _parts(block, window_words)):
        words = word_count(_shown([part]))
        if not groups or held + words > window_words:
            groups.append(_headings_at_end(groups[-1]) if groups else [])
            held = word_count(_shown(groups[-1]))
        groups[-1].append(part)
        held += words
    texts = [*map(_shown, groups)]
    return [
        Window(
            group,
            last_words("\n\n".join(texts[:place][-2:]), padding_words),
            first_words("\n\n".join(texts[place + 1 :][:2]), padding_words),
        )
        for place, group in enumerate(groups)
    ]


def _headings_at_end(group: list[Block]) -> list[Block]:
    """Take the headings off the end of a group that holds more than headings."""
    count = next((place for place, part in enumerate(reversed(group)) if not isinstance(part, Heading)), 0)
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


def _shown(blocks: Sequence[Block]) -> str:
    """Blocks as a model is shown them: headings without mark, as in a document that is not yet converted."""
    return "\n\n".join(each.text if isinstance(each, Heading) else block_markdown(each) for each in blocks)


def _parts(block: Block, max_words: int) -> Sequence[Block]:
    match block:
        case Paragraph():
            return [Paragraph(piece.text, piece.page, block.code) for piece in pieces(block, max_words)]
        case Table():
            return split_table(block, max_words)
    return [block]
