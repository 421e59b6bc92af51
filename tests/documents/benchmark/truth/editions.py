"""The true structure of a document of the list, read from the file that holds it."""

import gzip
import hashlib
import posixpath
import re
from pathlib import Path

from common.errors import ArtifactError, MissingInputError
from documents.records import Document
from tests.documents.benchmark.catalogue import CatalogueEntry, Truth
from tests.documents.benchmark.truth.groff import groff_document
from tests.documents.benchmark.truth.html_edition import html_document
from tests.documents.benchmark.truth.latex import latex_document
from tests.documents.benchmark.truth.open_document import odt_document
from tests.documents.benchmark.truth.plain_text import asciidoc_document, info_document, rst_document
from tests.documents.benchmark.truth.word import docx_document

WITH_TABLES = ("latex", "html", "docx", "odt")  # kinds of truth whose tables are read as tables
_PACKED = {"docx": docx_document, "odt": odt_document}
_SOURCES = {
    "latex": latex_document, "rst": rst_document, "asciidoc": asciidoc_document, "info": info_document,
    "groff": groff_document,
}  # fmt: skip
_NEXT = re.compile(rb"<link[^>]*rel=[\"']?next[\"']?[^>]*>", re.IGNORECASE)
_BELOW = re.compile(rb"<a [^>]*accesskey=[\"']?1[\"']?[^>]*>", re.IGNORECASE)
_ADDRESS = re.compile(rb"href=[\"']?([^\"'#> ]+)", re.IGNORECASE)


def true_document(entry: CatalogueEntry, folder: Path) -> Document:
    """What a document of the list truly holds.

    Args:
        entry: The document.
        folder: Holds each document's truth in a folder of the document's id, as `fetch` lays it.

    Raises:
        MissingInputError: If the truth is not there.
        ArtifactError: If it is not the file that the list names.
    """
    pages = truth_pages(entry.truth, folder / entry.id)
    if entry.truth.kind == "html":
        return html_document(pages, entry.id)
    content = pages[0][1]
    if entry.truth.kind in _PACKED:
        return _PACKED[entry.truth.kind](content, entry.id)
    return _SOURCES[entry.truth.kind](content.decode("utf-8", "replace"), entry.id)


def truth_pages(truth: Truth, root: Path) -> list[tuple[str, bytes]]:
    """Path in the package and unpacked content of each page of a document's truth, in order of reading.

    Args:
        truth: Where it stands in its package.
        root: The unpacked package.

    Raises:
        MissingInputError: If a page is not there.
        ArtifactError: If the pages are others than those of the list.
    """
    pages = [(truth.path, unpacked(root / truth.path))]
    links: list[str] = []  # pages to come, the next one last: those below a page (of Texinfo) come before the next one
    while truth.kind == "html" and len(pages) < truth.files:
        for link in (_NEXT.search(pages[-1][1]), _BELOW.search(pages[-1][1])):
            if address := _ADDRESS.search(link[0]) if link else None:
                links.append(posixpath.normpath(posixpath.join(posixpath.dirname(pages[-1][0]), address[1].decode())))
        while links and links[-1] in dict(pages):
            links.pop()
        if not links:
            break
        pages.append((links[-1], unpacked(root / links[-1])))
    sha256 = hashlib.sha256(b"".join(content for _, content in pages)).hexdigest()
    if len(pages) != truth.files or sha256 != truth.sha256:
        raise ArtifactError(
            f"the true structure in {root} is another one than the list's: {len(pages)} files with sha256 {sha256}, "
            f"not {truth.files} with {truth.sha256}; fetch it again: "
            "python -m tests.documents.benchmark.fetch --out FOLDER"
        )
    return pages


def unpacked(path: Path) -> bytes:
    """A file's content; of one that ends in ".gz" the content that it packs.

    Raises:
        MissingInputError: If there is no such file.
    """
    if not path.is_file():
        raise MissingInputError(
            f"{path} does not exist; fetch it: python -m tests.documents.benchmark.fetch --out FOLDER"
        )
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content
