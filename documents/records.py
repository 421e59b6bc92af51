"""Records of document processing (HiQA).

Blocks of a document in reading order, the document, and the segments it is cut into. Standard library only.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from common.records import Kind, Passage, clean

MAX_LEVELS = 6  # of headings, as in Markdown
PATH_SEPARATOR = " > "  # between document title and headings in a passage's title


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading.  `level` counts from 1 (chapters) to `MAX_LEVELS`; the document's title is not a heading."""

    text: str  # one line, with its number where the document prints one, e.g. "2.3 Power supply"
    level: int
    page: int | None = None  # from 1; None where the format has no pages


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text under a heading: prose as one line; list items as lines "- item" or "1. item"; code with its line breaks."""

    text: str
    page: int | None = None
    code: bool = False  # whether line breaks and blanks count


@dataclass(frozen=True, slots=True)
class Table:
    """A table: rows of cells, all rows equally long; a cell that spans several has its text in each of them."""

    rows: tuple[tuple[str, ...], ...]
    header_rows: int = 1  # rows at the top that name the columns; 0 if none does
    caption: str = ""  # e.g. "Table 3: Ratings"
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A bitmap or a vector drawing of a document, as a PNG, JPEG or SVG file's bytes."""

    data: bytes
    suffix: Literal[".png", ".jpg", ".svg"]
    caption: str = ""  # e.g. "Figure 2: Wiring"
    text: str = ""  # what is written in the image, or a description by a captioning model
    page: int | None = None

    @property
    def file(self) -> str:
        """File name of the image, by its content, so that equal images are stored once."""
        return hashlib.sha256(self.data).hexdigest()[:16] + self.suffix


Block = Heading | Paragraph | Table | Image


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read."""

    name: str  # its path in the folder of documents, with forward slashes
    title: str
    blocks: tuple[Block, ...]  # in reading order
    pages: int | None = None  # number of pages; None where the format has none
    # for the report: what a rule left out or moved, what could not be read and why, e.g. "page 7: no text (scanned?)"
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A retrievable part of a document with its cascaded metadata (HiQA, Algorithm 2).

    The text under one heading, a table or an image.

    An over-long one is several segments with the same path, `part` counting from 1 to `parts`.
    """

    document: str  # the document's name
    title: str  # the document's title
    headings: tuple[str, ...]  # from the chapter down to the heading above; empty before the first one
    kind: Kind
    text: (
        str  # what a reader gets: prose, the whole table in Markdown (with line breaks), an image's caption and context
    )
    embedded: str  # what is indexed after the metadata: as `text`, but for tables without their data fields (A.4)
    page: int | None = None  # the first page
    last_page: int | None = None
    part: int = 1
    parts: int = 1
    image: str = ""  # the image's file name, see `Image.file`

    @property
    def path(self) -> tuple[str, ...]:
        """Document title and headings."""
        return (self.title, *self.headings)


def as_passage(segment: Segment, metadata: tuple[str, ...], occurrence: int = 0) -> Passage:
    """A segment as a passage: its title is the metadata that is indexed with it, its own metadata says where it stands.

    Args:
        segment: The segment.
        metadata: What is put before the text: normally `segment.path`; less for HiQA's ablations.
        occurrence: How many equal segments stand before it under the same headings of the same document.
    """
    where = [segment.document, *segment.headings, segment.kind, segment.text, str(segment.part), str(occurrence)]
    id_ = hashlib.sha256("\x00".join(clean(part) for part in where).encode()).hexdigest()[:16]
    about: dict[str, object] = {"document": segment.document, "document_title": segment.title}
    about |= {"headings": list(segment.headings), "kind": segment.kind}
    optional = {"page": segment.page, "last_page": segment.last_page, "image": segment.image}
    about |= {name: value for name, value in optional.items() if value}
    if segment.parts > 1:
        about |= {"part": segment.part, "parts": segment.parts}
    title = clean(PATH_SEPARATOR.join(metadata))
    indexed = clean(f"{title} {segment.embedded}") if clean(segment.embedded) != clean(segment.text) else ""
    return Passage(id_, segment.text, title, metadata=about, indexed=indexed)
