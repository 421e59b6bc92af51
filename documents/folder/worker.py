"""Reads a document and cuts it into segments, in a process that can be killed (`common.killable`).

argument: the file, its content's SHA-256, its name, the folder and the file to write to
          (`documents.folder.cache`), and how to read and to cut it
result:   {}, or {"why": ..., "always": true} if its content cannot be read, {"why": ...} if it cannot at present,
          {"changed": true} if it has other content, {"error": ...} if no document can be read, {"unwritable": ...} if
          what was read cannot be kept
"""

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, DataError, UserError
from common.records import Passage
from documents.fidelity import shares
from documents.folder.options import Cutting
from documents.markdown_writing import to_markdown
from documents.normal_form import title_of
from documents.reading.any_file import read_document
from documents.reading.file_types import file_type
from documents.reading.linked_images import LinkedImages
from documents.records import Document, Heading, Image, Table
from documents.segments.augmentation import passages, segments
from documents.segments.chunking import fixed_chunks, plain_text
from documents.stored_document import load_about, load_document, save_document, write_rows


def convert(asked: dict[str, Any]) -> dict[str, Any]:
    """Read a document, unless it has been read before, and cut it into segments."""
    folder, name = Path(asked["folder"]), asked["name"]
    linked = LinkedImages(Path(asked["file"]), Path(asked["root"]))
    try:
        try:
            if not linked.unchanged(load_about(folder)["linked"]):
                raise ValueError("an image that the document links to has changed")
            document = load_document(folder)
        except (OSError, ValueError, KeyError, TypeError):  # not there yet, damaged or not up to date
            if "passes" in asked["reading"]:
                return {"why": "what a model made of it was lost again: run again"}
            started = time.process_time()
            data = Path(asked["file"]).read_bytes()
            if hashlib.sha256(data).hexdigest() != asked["sha256"]:
                return {"changed": True}
            linked.digests.clear()
            document = read_document(data, name, asked["reading"]["options"]["outline"], linked)
            about: dict[str, Any] = {"format": file_type(data, name), "bytes": len(data), "counts": _counts(document)}
            about |= {"seconds": round(time.process_time() - started, 3)}
            about |= {"reading": asked["reading"], "linked": linked.digests, **_shares(about["format"], data, document)}
            for outdated in [*folder.glob("segments-*"), *folder.glob(".tmp-*")]:  # of another cut; of a killed process
                outdated.unlink()
            save_document(folder, document, to_markdown(document), about)
        _save_segments(Path(asked["segments"]), passages_of(document, name, Cutting(**asked["cutting"])))
    except DataError as error:
        return {"always": True, "why": str(error).removeprefix(name).lstrip(": ")}
    except ArtifactError as error:
        return {"unwritable": str(error)}
    except UserError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"why": f"cannot be read: {error.strerror or error}"}
    except MemoryError:
        raise
    except Exception as error:  # what a library makes of a hostile file
        return {"why": f"cannot be read ({type(error).__name__}: {str(error)[:200]})"}
    return {}


def passages_of(document: Document, name: str, cutting: Cutting) -> list[Passage]:
    """The segments of a document as passages.

    Args:
        document: The document, which may have been read under an earlier name.
        name: The name that it has now.
        cutting: How it is cut into segments.
    """
    own_title = document.title != title_of(document.name)
    document = replace(document, name=name, title=document.title if own_title else title_of(name))
    if cutting.chunk_words is not None:
        return passages(fixed_chunks(document, cutting.chunk_words, cutting.chunk_overlap), cutting.cascade)
    return passages(segments(document, cutting.max_words), cutting.cascade)


def _shares(kind: str, data: bytes, document: Document) -> dict[str, float]:
    """The shares of text that the reading of a PDF file lost, invented and tore, compared with the file's own order."""
    if kind != "pdf":
        return {}
    from documents.reading.raw_text import raw_text

    return shares(raw_text(data), plain_text(document)[0])


def _counts(document: Document) -> dict[str, int]:
    found = Counter(type(block) for block in document.blocks)
    return {"headings": found[Heading], "tables": found[Table], "images": found[Image]}


def _save_segments(file: Path, passages: Sequence[Passage]) -> None:
    kinds = Counter(str((passage.metadata or {}).get("kind", "text")) for passage in passages)
    write_rows(file, ({"segments": dict(sorted(kinds.items()))}, *(passage.row for passage in passages)))
