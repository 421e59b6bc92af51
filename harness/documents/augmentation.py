"""Hierarchical contextual augmentation (HiQA, Algorithm 2): a document's blocks to segments with cascaded metadata.

A document is a tree: its title the root, its headings the nodes.  Text, tables and images under one heading become segments that carry the path from
the root.  Tables and images are segments of their own (appendix A.3 to A.5), and their captions stay in the text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from common.checks import check_at_least, check_choice
from common.documents import Block, Document, Heading, Image, Paragraph, Segment, Table, as_passage
from common.records import Passage
from harness.documents.markdown_writing import table_markdown
from harness.documents.normal_form import normalized, without_repeats
from harness.documents.splitting import Piece, joined, packed, pieces, sentences, split_table, word_spans

MOST_WORDS = 200  # of a segment's text; about 270 tokens
CONTEXT_WORDS = 40  # of the text beside a table or an image
Cascade = Literal["path", "heading", "none"]


@dataclass
class Section:
    """What stands under one heading, up to the next heading of any level."""

    headings: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)
    page: int | None = None  # of the heading
    is_leaf: bool = True  # whether no heading stands below it


def sections(blocks: Iterable[Block]) -> list[Section]:
    """The sections in reading order; the first one holds what stands before all headings.

    A level may be skipped: a heading belongs to the nearest one before it that is higher.  Headings with the same text are different sections.
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


def segments(document: Document, most_words: int = MOST_WORDS) -> list[Segment]:
    """The segments of a document, in reading order: of each section its text, then its tables and images.

    A heading without content and without headings below it is its own text, so that it can be found.

    Args:
        document: The document.
        most_words: A longer segment is split between paragraphs, sentences or rows.

    Raises:
        UserError: If `most_words` is below 1.
    """
    check_at_least(1, most_words=most_words)
    document = normalized(document)
    return [segment for section in sections(document.blocks) for segment in _of_section(document, section, most_words)]


def passages(segments: Iterable[Segment], cascade: Cascade = "path") -> list[Passage]:
    """Segments as passages.

    Args:
        segments: Of one or several documents.
        cascade: The metadata that are indexed before the text: the whole path, its own heading only, or nothing (the paper's ablations).

    Raises:
        UserError: If `cascade` is unknown.
    """
    check_choice(get_args(Cascade), cascade=cascade)
    seen: Counter[tuple[object, ...]] = Counter()
    made = []
    for segment in segments:
        key = (segment.document, segment.headings, segment.kind, segment.text, segment.part)
        metadata = {"path": segment.path, "heading": segment.headings[-1:], "none": ()}[cascade]
        made.append(as_passage(segment, metadata, seen[key]))
        seen[key] += 1
    return made


def _of_section(document: Document, section: Section, most_words: int) -> Iterator[Segment]:
    base = Segment(document.name, document.title, section.headings, "text", "", "", section.page)
    if not section.blocks and section.headings and section.is_leaf:
        yield replace(base, text=section.headings[-1], embedded=section.headings[-1], last_page=section.page)
    if any(isinstance(block, Paragraph) for block in section.blocks):
        yield from _text(base, section.blocks, most_words)
    for place, block in enumerate(section.blocks):
        if isinstance(block, Table):
            yield from _table(base, block, section.blocks[:place], most_words)
        elif isinstance(block, Image):
            yield from _image(base, block, section.blocks[:place], section.blocks[place + 1 :])


def _text(base: Segment, blocks: Sequence[Block], most_words: int) -> Iterator[Segment]:
    parts: list[Piece] = []
    for block in blocks:
        if isinstance(block, Paragraph):
            parts += pieces(block, most_words)
        elif isinstance(block, Table | Image):
            parts += pieces(Paragraph(block.caption, block.page), most_words) if block.caption else []
    groups = packed(parts, most_words)
    for number, group in enumerate(groups, start=1):
        known = [piece.page for piece in group if piece.page is not None]
        text = joined(group)
        yield replace(base, text=text, embedded=text, page=min(known, default=None), last_page=max(known, default=None),
                      part=number, parts=len(groups))  # fmt: skip


def _table(base: Segment, table: Table, before: Sequence[Block], most_words: int) -> Iterator[Segment]:
    """A.4: numbers are noise for an embedding, so that only what describes a table is indexed."""
    tables = split_table(table, most_words)
    for number, part in enumerate(tables, start=1):
        header = [" ".join(filter(None, without_repeats(row))) for row in part.rows[: part.header_rows]]
        names = [row[0] for row in part.rows[part.header_rows :] if any(map(str.isalpha, row[0]))]
        described = [_context(before, last=True), part.caption, *header, *without_repeats(names)]
        text = "\n\n".join(filter(None, [part.caption, table_markdown(part)]))
        yield replace(base, kind="table", text=text, embedded="\n".join(filter(None, described)), page=part.page,
                      last_page=part.page, part=number, parts=len(tables))  # fmt: skip


def _image(base: Segment, image: Image, before: Sequence[Block], after: Sequence[Block]) -> Iterator[Segment]:
    """A.3 and A.5: an image is found by its caption, the text around it and the text in it."""
    shown = list(filter(None, [image.caption, _context(before, last=True), _context(after, last=False)]))
    shown = shown or [image.text or base.path[-1]]
    embedded = [*shown, image.text] if image.text not in shown else shown
    yield replace(base, kind="image", text="\n".join(shown), embedded="\n".join(filter(None, embedded)),
                  page=image.page, last_page=image.page, image=image.file)  # fmt: skip


def _context(blocks: Sequence[Block], last: bool) -> str:
    """The nearest sentences of the prose before (`last`) or behind a place, at most two and `CONTEXT_WORDS` words."""
    near = [block.text for block in blocks if isinstance(block, Paragraph) and not block.code]
    if not near:
        return ""
    found = [part for line in near[-1 if last else 0].split("\n") for part in sentences(line)]
    text = " ".join(found[-2:] if last else found[:2])
    spans = word_spans(text)
    if len(spans) <= CONTEXT_WORDS:
        return text
    return text[spans[-CONTEXT_WORDS][0] :] if last else text[: spans[CONTEXT_WORDS - 1][1]]
