"""The real documents that document readers are compared on.

Packages, checksums, where each one's true structure stands, and halves.

The list (`documents.json` beside this file) was committed before any reader was tuned; the ten of the half "new" were
added once the held-out ones were known, before any reader saw them. Every document is a file of a Debian 12 or PyPI
package. Its truth is another file: the LaTeX, groff, OpenDocument, reStructuredText or AsciiDoc source, the HTML or
Info edition; for Word the file's own paragraph styles. Never a PDF's bookmarks.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Half = Literal["tuning", "held-out", "new"]
Kind = Literal["latex", "html", "rst", "asciidoc", "info", "docx", "odt", "groff"]
FILE = Path(__file__).with_name("documents.json")


@dataclass(frozen=True, slots=True)
class Truth:
    """Where the true outline, tables and text of a document stand."""

    kind: Kind
    package: str
    version: str
    path: str  # in the package; the first page, where an HTML edition has several
    files: int  # number of pages: each names the next one by `<link rel="next">`
    sha256: str  # of the unpacked contents of all pages, one after the other


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A document of the list."""

    id: str
    half: Half
    source: Literal["debian", "pypi"]
    package: str
    version: str
    path: str  # in the package; one that ends in ".gz" is unpacked
    sha256: str  # of the document, unpacked
    format: Literal["pdf", "html", "docx", "markdown"]
    language: str
    licence: str
    pages: int | None  # of a PDF
    columns: int | None  # of a PDF
    contains: tuple[str, ...]
    truth: Truth

    @property
    def file(self) -> str:
        """The document's file name, e.g. "fhs.pdf"."""
        return f"{self.id}.{'md' if self.format == 'markdown' else self.format}"


def catalogue(half: str = "all") -> list[CatalogueEntry]:
    """The documents of a half, or of all ("all"), in the order of the list."""
    if half not in ("all", *get_args(Half)):
        raise ValueError(f"half is {half!r}; allowed: all, {', '.join(get_args(Half))}")
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    entries = [
        CatalogueEntry(**{**row, "contains": tuple(row["contains"]), "truth": Truth(**row["truth"])}) for row in rows
    ]
    return [entry for entry in entries if half in ("all", entry.half)]


def halves(entries: Iterable[CatalogueEntry]) -> dict[str, Half]:
    """The rule by which halves were drawn before any document was read by a program of ours.

    Documents are sorted by SHA-256 within three groups (PDFs of several columns, other PDFs, everything else); the
    first, third, ... of a group are for tuning, the others held out. The half "new" was drawn by another rule.

    Returns:
        Half by id.
    """
    groups = defaultdict(list)
    for entry in entries:
        if entry.half == "new":
            continue
        groups[entry.format == "pdf", (entry.columns or 1) > 1].append(entry)
    drawn: dict[str, Half] = {}
    for group in groups.values():
        for position, entry in enumerate(sorted(group, key=lambda entry: entry.sha256)):
            drawn[entry.id] = "held-out" if position % 2 else "tuning"
    return drawn
