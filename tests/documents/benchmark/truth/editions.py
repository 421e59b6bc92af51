"""The true structure of a document of the list, read from the file that holds it."""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, MissingInputError
from documents.records import Document
from tests.documents.benchmark.truth.groff import groff_document
from tests.documents.benchmark.truth.latex import latex_document
from tests.documents.benchmark.truth.markup import docx_document, html_document, odt_document
from tests.documents.benchmark.truth.plain_text import asciidoc_document, info_document, rst_document

WITH_TABLES = ("latex", "html", "docx", "odt")  # kinds of truth whose tables are read as tables
Pages = Sequence[tuple[str, bytes]]  # path in the package and unpacked content of each, in order of reading
_NEXT = re.compile(rb"<link[^>]*rel=[\"']?next[\"']?[^>]*>", re.IGNORECASE)
_BELOW = re.compile(rb"<a [^>]*accesskey=[\"']?1[\"']?[^>]*>", re.IGNORECASE)
_ADDRESS = re.compile(rb"href=[\"']?([^\"'#> ]+)", re.IGNORECASE)


def _of_source(read: Callable[[str, str], Document]) -> Callable[[Pages, str], Document]:
    return lambda pages, name: read(pages[0][1].decode("utf-8", "replace"), name)


READERS = {"html": html_document, "docx": docx_document, "odt": odt_document, "latex": _of_source(latex_document)}
READERS |= {"rst": _of_source(rst_document), "asciidoc": _of_source(asciidoc_document)}
READERS |= {"info": _of_source(info_document), "groff": _of_source(groff_document)}


def true_document(entry: Any, folder: Path) -> Document:
    """What a document of the list truly holds, by its truth in a folder of its id, as `fetch` lays it."""
    return READERS[entry.truth.kind](truth_pages(entry.truth, folder / entry.id), entry.id)


def truth_pages(truth: Any, root: Path) -> Pages:
    """The pages of a document's truth in its unpacked package.

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
    """A file's content; of one that ends in ".gz" the content that it packs."""
    if not path.is_file():
        raise MissingInputError(
            f"{path} does not exist; fetch it: python -m tests.documents.benchmark.fetch --out FOLDER"
        )
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content
