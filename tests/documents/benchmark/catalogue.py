"""The real documents that document readers are compared on.

Packages, checksums, where each one's true structure stands, and halves.

The list (`documents.json` beside this file) was committed before any reader was tuned; the ten of the half "new" were
added once the held-out ones were known, before any reader saw them. Every document is a file of a Debian 12 or PyPI
package. Its truth is another file: the LaTeX, groff, OpenDocument, reStructuredText or AsciiDoc source, the HTML or
Info edition; for Word the file's own paragraph styles. Never a PDF's bookmarks.

A document's `path` is that in its package; one that ends in ".gz" is unpacked. `sha256` is of the document, unpacked;
that of its `truth` is of the unpacked contents of all `files` pages, one after the other: each names the next one by
`<link rel="next">`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HALVES = ("tuning", "held-out", "new")
FILE = Path(__file__).with_name("documents.json")


def catalogue(half: str = "all") -> list[Any]:
    """The documents of a half, or of all ("all"), in the order of the list; `file` is a document's name."""
    entries = json.loads(FILE.read_text(encoding="utf-8"), object_hook=lambda row: SimpleNamespace(**row))
    for entry in entries:
        entry.file = f"{entry.id}.{'md' if entry.format == 'markdown' else entry.format}"
    return [entry for entry in entries if half in ("all", entry.half)]


def halves(entries: Iterable[Any]) -> dict[str, str]:
    """The rule by which halves were drawn before any document was read by a program of ours: half by id.

    Documents are sorted by SHA-256 within three groups (PDFs of several columns, other PDFs, everything else); the
    first, third, ... of a group are for tuning, the others held out. The half "new" was drawn by another rule.
    """
    groups = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.sha256):
        if entry.half != "new":
            groups[entry.format == "pdf", (entry.columns or 1) > 1].append(entry.id)
    return {id_: HALVES[place % 2] for group in groups.values() for place, id_ in enumerate(group)}
