"""A document on disk: its blocks as JSON Lines, its Markdown text, its images as files.

document.jsonl   `write_rows`: the document; then one line a block, in reading order
document.md      the same as Markdown, for people
images/          named by their content
"""

import dataclasses
import json
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

from common.files import write_atomically, write_text
from documents.records import Block, Document, Image, Table

DOCUMENT, MARKDOWN, IMAGES = "document.jsonl", "document.md", "images"
_KINDS: dict[str, type[Block]] = {class_.__name__.lower(): class_ for class_ in get_args(Block)}


def save_document(folder: Path, document: Document, markdown: str, about: dict[str, Any]) -> None:
    """Write a document into a folder of its own, `document.jsonl` last: a folder that has it is complete.

    Args:
        folder: Created if it is missing.
        document: The document.
        markdown: Its text as Markdown.
        about: What else is known of it, JSON types only; see `load_about`.

    Raises:
        ArtifactError: If writing to disk fails.
    """
    for block in document.blocks:
        if isinstance(block, Image) and not (folder / IMAGES / block.file).exists():
            write_atomically(folder / IMAGES / block.file, partial(Path.write_bytes, data=block.data))
    write_text(folder / MARKDOWN, markdown)
    head = {**about, "name": document.name, "title": document.title, "pages": document.pages}
    head |= {"left_out": document.left_out, "blocks": len(document.blocks)}
    write_rows(folder / DOCUMENT, (head, *map(_row, document.blocks)))


def load_document(folder: Path) -> Document:
    """The document that `save_document` wrote.

    Raises:
        OSError: If a file is missing.
        ValueError: If a file is corrupt.
    """
    head, *rows = read_rows(folder / DOCUMENT)
    blocks = tuple(_blocks(rows, folder / IMAGES))
    return Document(head["name"], head["title"], blocks, head["pages"], tuple(head["left_out"]))


def load_about(folder: Path) -> dict[str, Any]:
    """What `save_document` was told of a document.  Errors as `load_document`."""
    return read_rows(folder / DOCUMENT)[0]


def write_rows(file: Path, rows: Iterable[Any]) -> None:
    """Write rows of JSON types as JSON Lines, behind a line with their CRC-32.

    Raises:
        ArtifactError: If writing to disk fails.
    """
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_text(file, f"{zlib.crc32(text.encode()):08x}\n{text}")


def read_rows(file: Path) -> list[Any]:
    """What `write_rows` wrote.  Errors as `load_document`."""
    checksum, _, text = file.read_bytes().partition(b"\n")
    if checksum != b"%08x" % zlib.crc32(text) or not text:
        raise ValueError(f"{file} is damaged")
    return [json.loads(line) for line in text.splitlines()]


def _row(block: Block) -> dict[str, Any]:
    fields = {field.name: getattr(block, field.name) for field in dataclasses.fields(block)}
    if isinstance(block, Image):
        fields["data"] = block.file
    return {
        "kind": type(block).__name__.lower(),
        **{name: value for name, value in fields.items() if value not in (None, "")},
    }


def _blocks(rows: Iterable[dict[str, Any]], images: Path) -> Iterator[Block]:
    for fields in rows:
        class_ = _KINDS[fields.pop("kind")]
        if class_ is Table:
            fields["rows"] = tuple(tuple(row) for row in fields["rows"])
        if class_ is Image:
            fields["data"] = (images / fields["data"]).read_bytes()
        yield class_(**fields)
