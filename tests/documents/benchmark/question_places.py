"""A seeded draw of places in the real documents, to write questions about.

It draws from plain text that this project's reader had no part in.

    python -m tests.documents.benchmark.question_places --documents FOLDER --only fhs --first 8

Plain text: of PDFs by poppler's `pdftotext` (must be installed), of HTML and Word by lxml, Markdown as it stands.
"""

import argparse
import random
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from lxml import etree, html

from common.errors import DataError, MissingInputError, UserError
from tests.documents.benchmark.catalogue import CatalogueEntry, catalogue

SEED = 18
WORDS = 250  # of a place, at most
LOOKALIKES = (  # documents about the same kind of thing; questions across two documents are about pairs within a group
    (
        "acm-conference", "aps-sample", "asme-conference", "elsarticle-manual", "mnras-guide", "oup-template",
        "quantum-template", "revtex-guide",
    ),
    ("debian-faq", "developers-reference", "fhs"),
    (
        "dblatex-manual", "docutils-latex", "latex-news-35", "latex2html-manual", "markdown-api", "markdown-reference",
        "restructuredtext",
    ),
)  # fmt: skip
_WORD_TEXT = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@dataclass(frozen=True, slots=True)
class QuestionPlace:
    """A piece of a document's plain text."""

    document: str  # file name
    page: int | None  # of a PDF, from 1
    text: str


def places(entry: CatalogueEntry, documents: Path) -> list[QuestionPlace]:
    """The document's places in the order in which they were drawn.

    All of them, shuffled with a seed of the document's own.
    """
    cut = [
        QuestionPlace(entry.file, number if entry.format == "pdf" else None, piece)
        for number, page in enumerate(plain_pages(entry, documents), start=1)
        for piece in _pieces(page)
    ]
    random.Random(f"{SEED} {entry.id}").shuffle(cut)
    return cut


def pairs() -> list[tuple[str, str]]:
    """Pairs of look-alike documents in the order in which they were drawn."""
    drawn = [pair for group in LOOKALIKES for pair in combinations(group, 2)]
    random.Random(f"{SEED} pairs").shuffle(drawn)
    return drawn


def plain_pages(entry: CatalogueEntry, documents: Path) -> list[str]:
    """Plain text of every page of a PDF; of other files, one page.

    Args:
        entry: The document.
        documents: Folder that `tests.documents.benchmark.fetch` filled, or one folder with all files.

    Raises:
        MissingInputError: The document is not there.
        UserError: `pdftotext` is not installed.
        DataError: `pdftotext` cannot read the document.
    """
    choices = (documents / entry.half / entry.file, documents / entry.file)
    file = next((each for each in choices if each.is_file()), None)
    if file is None:
        raise MissingInputError(
            f"{choices[0]} does not exist; fetch it: python -m tests.documents.benchmark.fetch --out {documents}"
        )
    if entry.format == "pdf":
        return _pdf_pages(file)
    if entry.format == "html":
        page = html.document_fromstring(file.read_bytes())
        etree.strip_elements(page, "script", "style", with_tail=False)
        return [page.text_content()]
    if entry.format == "docx":
        with zipfile.ZipFile(file) as folder:
            root = etree.fromstring(folder.read("word/document.xml"))
        return ["\n".join("".join(each.itertext(f"{_WORD_TEXT}t")) for each in root.iter(f"{_WORD_TEXT}p"))]
    return [file.read_text(encoding="utf-8")]


def _pdf_pages(file: Path) -> list[str]:
    if not shutil.which("pdftotext"):
        raise UserError("Reading PDFs as plain text needs pdftotext: apt-get install poppler-utils")
    ran = subprocess.run(["pdftotext", "-enc", "UTF-8", file, "-"], capture_output=True, check=False)
    if ran.returncode:
        raise DataError(f"pdftotext cannot read {file}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout.decode("utf-8").removesuffix("\f").split("\f")


def _pieces(page: str) -> list[str]:
    """The page's lines in pieces of at most `WORDS` words; a longer line is a piece of its own."""
    pieces: list[list[str]] = [[]]
    words = 0
    for line in page.splitlines():
        count = len(line.split())
        if words and words + count > WORDS:
            pieces.append([])
            words = 0
        pieces[-1].append(line)
        words += count
    return [text for piece in pieces if (text := "\n".join(piece).strip())]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the first places of each document, or the pairs."""
    options = argparse.ArgumentParser(
        "python -m tests.documents.benchmark.question_places",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--documents", type=Path, required=True, help="folder with the documents")
    options.add_argument("--only", nargs="+", default=[], metavar="ID", help="these documents")
    options.add_argument("--first", type=int, default=10, help="places of each document")
    options.add_argument("--pairs", action="store_true", help="print the pairs of look-alike documents instead")
    given = options.parse_args(arguments)
    if given.pairs:
        print("\n".join(f"{number} {one} {other}" for number, (one, other) in enumerate(pairs(), start=1)))
        return
    entries = {entry.id: entry for entry in catalogue()}
    if unknown := [each for each in given.only if each not in entries]:
        raise UserError(f"--only names no document: {' '.join(unknown)}. Documents: {' '.join(entries)}.")
    for name in given.only or entries:
        for number, place in enumerate(places(entries[name], given.documents)[: given.first], start=1):
            print(f"=== {place.document}, draw {number}" + (f", page {place.page}" if place.page else ""))
            print(place.text)


if __name__ == "__main__":
    main()
