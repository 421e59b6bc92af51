"""Reads the true structure of the world's library as documents, to score what a formatter reads from its PDFs."""

import json
from pathlib import Path

from common.errors import DataError, MissingInputError
from documents.records import Block, Document, Heading, Image, Paragraph, Table


def library_truth(world: Path) -> list[Document]:
    """The library's manuals as they are; for the data of an image stands its caption.

    Args:
        world: A folder that `python -m datamodules.world --library true` wrote.

    Raises:
        MissingInputError: If it holds no library.
        DataError: If a block is of no known kind.
    """
    files = sorted((world / "library" / "truth").glob("*.json"))
    if not files:
        raise MissingInputError(
            f"{world} holds no library: write one with python -m datamodules.world --out {world} --library true"
        )
    return [_document(f"{file.stem}.pdf", json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _document(name: str, truth: dict) -> Document:
    return Document(name, truth["title"], tuple(map(_block, truth["blocks"])), truth["pages"])


def _block(row: dict) -> Block:
    page = row["page"]
    match row["kind"]:
        case "heading":
            return Heading(row["text"], row["level"], page)
        case "paragraph":
            return Paragraph(row["text"], page)
        case "table":
            return Table(tuple(map(tuple, row["rows"])), row["header_rows"], row["caption"], page)
        case "image":
            return Image(row["caption"].encode(), ".svg", row["caption"], " ".join(row["labels"]), page)
        case kind:
            raise DataError(f"a block of the library's truth is of the kind {kind!r}. Write the world again.")
