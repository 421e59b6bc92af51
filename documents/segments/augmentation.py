"""Hierarchical contextual augmentation (HiQA, Algorithm 2): a document's blocks to segments with cascaded metadata.

A document is a tree: its title the root, its headings the nodes. Text, tables and images under one heading become
segments that carry the path from the root. Tables and images are segments of their own (appendix A.3 to A.5), and their
captions stay in the text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from common.records import Passage
from documents.markdown_writing import table_markdown
from documents.normal_form import normalized, without_repeats
from documents.records import Block, Document, Image, Paragraph, Segment, Table, as_passage
from documents.segments.sections import Section, sections
from documents.segments.splitting import TextPiece, joined, packed, pieces, sentences, split_table, word_spans

MAX_WORDS = 200  # of a segment's text; about 270 tokens
CONTEXT_WORDS = 40  # of the text beside a table or an image
Cascade = Literal["path", "heading", "none"]


def segments(document: Document, max_words: int = MAX_WORDS) -> list[Segment]:
    """The segments of a document, in reading order: of each section its text, then its tables and images.

    A heading without content and without headings below it is its own text, so that it can be found.

    Args:
        document: The document.
        max_words: A longer segment is split between paragraphs, sentences or rows.
    """
    document = normalized(document)
    made: list[Segment] = []
    for section in sections(document.blocks):
        made += _text(document, section, max_words)
        made += _tables_and_images(document, section, max_words)
    return made


def passages(segments: Iterable[Segment], cascade: Cascade = "path") -> list[Passage]:
    """Segments as passages.

    Args:
        segments: Of one or several documents.
        cascade: The metadata that are indexed before the text: the whole path, its own heading only, or nothing (the
            paper's ablations).
    """
    seen: Counter[tuple[object, ...]] = Counter()
    made = []
    for segment in segments:
        key = (segment.document, segment.headings, segment.kind, segment.text, segment.part)
        metadata = {"path": segment.path, "heading": segment.headings[-1:], "none": ()}[cascade]
        made.append(as_passage(segment, metadata, seen[key]))
        seen[key] += 1
    return made


def _base(document: Document, section: Section) -> Segment:
    return Segment(document.name, document.title, section.headings, "text", "", "", section.page)


def _tables_and_images(document: Document, section: Section, max_words: int) -> Iterator[Segment]:
    base = _base(document, section)
    for place, block in enumerate(section.blocks):
        if isinstance(block, Table):
            yield from _table(base, block, section.blocks[:place], max_words)
        elif isinstance(block, Image):
            yield from _image(base, block, section.blocks[:place], section.blocks[place + 1 :])


def _text(document: Document, section: Section, max_words: int) -> Iterator[Segment]:
    base = _base(document, section)
    if not section.blocks and section.headings and section.is_leaf:
        yield replace(base, text=section.headings[-1], embedded=section.headings[-1], last_page=section.page)
    if not any(isinstance(block, Paragraph) for block in section.blocks):
        return
    parts: list[TextPiece] = []
    for block in section.blocks:
        if isinstance(block, Paragraph):
            parts += pieces(block, max_words)
        elif isinstance(block, Table | Image):
            parts += pieces(Paragraph(block.caption, block.page), max_words) if block.caption else []
    groups = packed(parts, max_words)
    for number, group in enumerate(groups, start=1):
        known = [piece.page for piece in group if piece.page is not None]
        text = joined(group)
        yield replace(base, text=text, embedded=text, page=min(known, default=None), last_page=max(known, default=None),
                      part=number, parts=len(groups))  # fmt: skip


def _table(base: Segment, table: Table, before: Sequence[Block], max_words: int) -> Iterator[Segment]:
    """A.4: numbers are noise for an embedding, so that only what describes a table is indexed."""
    tables = split_table(table, max_words)
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
