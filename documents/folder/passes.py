"""Documents after a pass, stored like those before it."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from common.files import sha256
from documents.fidelity import shares
from documents.folder.cache import CachedDocument
from documents.folder.options import NO_REPLY, DocumentPass
from documents.markdown_writing import to_markdown
from documents.records import Document, Image
from documents.segments.chunking import plain_text
from documents.stored_document import DOCUMENT, load_about, load_document, save_document


def convert(each: DocumentPass, entries: Sequence[tuple[CachedDocument, CachedDocument]]) -> None:
    """Give the documents to a pass that it has not converted yet, or not whole.

    Args:
        each: The pass.
        entries: Each document, and the place of its conversion.

    Raises:
        ArtifactError: If writing to disk fails.
    """
    missing = [pair for pair in entries if not _is_done(*pair)]
    given: deque[Document] = deque()

    def documents() -> Iterator[Document]:
        for read, _ in missing:
            given.append(load_document(read.folder))
            yield given[-1]

    converted = each.convert(documents()) if missing else iter(())
    for (read, kept), document in zip(missing, converted, strict=True):
        about = load_about(read.folder) | {"reading": kept.reading, "converted": sha256(read.folder / DOCUMENT)}
        for outdated in kept.folder.glob("segments-*"):
            outdated.unlink()
        save_document(kept.folder, document, to_markdown(document), about | _changes(given.popleft(), document))


def _is_done(read: CachedDocument, kept: CachedDocument) -> bool:
    try:
        about = load_about(kept.folder)
        of = sha256(read.folder / DOCUMENT)
        return about["converted"] == of and not any(NO_REPLY in why for why in about["left_out"])
    except (OSError, ValueError, KeyError):
        return False


def _changes(before: Document, after: Document) -> dict[str, float]:
    """The shares of text that a pass lost, invented and tore, if it changed any; descriptions of images are none."""
    source, result = (
        plain_text(replace(each, blocks=tuple(block for block in each.blocks if not isinstance(block, Image))))[0]
        for each in (before, after)
    )
    return {} if source == result else shares(source, result)
