"""A document on disk: its blocks as JSON Lines, its Markdown text, its images as files.

document.jsonl   first line: the document; then one line a block, in reading order
document.md      the same as Markdown, for people
images/          named by their content
"""

import dataclasses
import json
from collections.abc import Iterator
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
            write_atomically(folder / IMAGES / block.file, partial(_write_bytes, block.data))
    write_text(folder / MARKDOWN, markdown)
    head = {**about, "name": document.name, "title": document.title, "pages": document.pages}
    head |= {"left_out": document.left_out, "blocks": len(document.blocks)}
    rows = (head, *map(_row, document.blocks))
    write_text(folder / DOCUMENT, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def load_document(folder: Path) -> Document:
    """The document that `save_document` wrote.

    Raises:
        OSError: If a file is missing.
        ValueError: If a file is corrupt.
    """
    with (folder / DOCUMENT).open(encoding="utf-8") as file:
        head = json.loads(file.readline())
        blocks = tuple(_blocks(file, folder / IMAGES))
    if len(blocks) != head["blocks"]:
        raise ValueError(f"{folder / DOCUMENT} has {len(blocks)} of {head['blocks']} blocks")
    return Document(head["name"], head["title"], blocks, head["pages"], tuple(head["left_out"]))


def load_about(folder: Path) -> dict[str, Any]:
    """What `save_document` was told of a document.  Errors as `load_document`."""
    with (folder / DOCUMENT).open(encoding="utf-8") as file:
        return json.loads(file.readline())


def _write_bytes(data: bytes, path: Path) -> None:
    path.write_bytes(data)


def _row(block: Block) -> dict[str, Any]:
    fields = {field.name: getattr(block, field.name) for field in dataclasses.fields(block)}
    if isinstance(block, Image):
        fields["data"] = block.file
    return {
        "kind": type(block).__name__.lower(),
        **{name: value for name, value in fields.items() if value not in (None, "")},
    }


def _blocks(lines: Iterator[str], images: Path) -> Iterator[Block]:
    for line in lines:
        fields = json.loads(line)
        class_ = _KINDS[fields.pop("kind")]
        if class_ is Table:
            fields["rows"] = tuple(tuple(row) for row in fields["rows"])
        if class_ is Image:
            fields["data"] = (images / fields["data"]).read_bytes()
        yield class_(**fields)
