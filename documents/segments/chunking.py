"""Fixed-size chunks of a document without regard to its structure: what HiQA's segments are compared with."""

from bisect import bisect_right

from documents.markdown_writing import table_markdown
from documents.normal_form import normalized
from documents.records import Document, Heading, Image, Paragraph, Segment, Table
from documents.segments.splitting import word_spans


def plain_text(document: Document) -> tuple[str, list[tuple[int, int | None]]]:
    """The text of a document in reading order without marks of headings, tables in Markdown.

    Also from which character on which page it stands.
    """
    parts: list[str] = []
    pages: list[tuple[int, int | None]] = []
    length = 0
    for block in document.blocks:
        match block:
            case Heading() | Paragraph():
                text = block.text
            case Table():
                text = "\n".join(filter(None, [block.caption, table_markdown(block)]))
            case Image():
                text = "\n".join(filter(None, [block.caption, block.text]))
        if text:
            pages.append((length, block.page))
            parts.append(text)
            length += len(text) + 2
    return "\n\n".join(parts), pages


def fixed_chunks(document: Document, words: int = 200, overlap: int = 40) -> list[Segment]:
    """Chunks of `words` words, each of which begins with the last `overlap` words of the one before.

    `augmentation.passages` puts the document's title before each with cascade "path", and nothing with "none".

    Args:
        document: The document.
        words: Length of a chunk; the last one may be shorter.
        overlap: Words that neighbouring chunks share, fewer than `words`.
    """
    document = normalized(document)
    text, pages = plain_text(document)
    starts = [start for start, _ in pages]
    spans = word_spans(text)
    made: list[Segment] = []
    for first in range(0, max(len(spans) - overlap, 1) if spans else 0, words - overlap):
        start, end = spans[first][0], spans[min(first + words, len(spans)) - 1][1]
        pages_in = [page for _, page in pages[bisect_right(starts, start) - 1 : bisect_right(starts, end - 1)] if page]
        chunk = text[start:end]
        made.append(
            Segment(document.name, document.title, (), "text", chunk, chunk,
                    min(pages_in, default=None), max(pages_in, default=None))
        )  # fmt: skip
    return made
