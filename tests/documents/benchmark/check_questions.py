"""Whether the evidence of the questions about the real documents stands in the documents and in an index's passages.

    python -m tests.documents.benchmark.check_questions --documents FOLDER \
        --indexes indexes/real/bm25 indexes/real-chunks/bm25

Each index folder was built by `infer.py index --documents`. Prints Markdown: how many gold segments each one holds
whole, and which it does not: a retriever over it cannot find these, and they count as misses. The documents' plain text
is read by other tools than this project's reader: PDFs by poppler's `pdftotext`, which must be installed, HTML and Word
by lxml.
"""

import argparse
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from lxml import etree, html

from common.errors import DataError, MissingInputError, UserError
from common.gold_segments import is_relevant
from common.records import GoldSegment, Passage, Question, nfkc
from datamodules.formats.reading import read_questions
from harness.evaluation.tables import markdown_table
from harness.indexing.passage_store import PassageStore
from tests.documents.benchmark.catalogue import FILE, CatalogueEntry, catalogue

HALVES = ("validation", "test")
FOLDER = FILE.with_name("questions")
_WORD_TEXT = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LETTERS = re.compile(r"[^\W_]+")


def questions(half: str) -> list[Question]:
    """The questions of a half."""
    return list(read_questions("flashrag", str(FOLDER / f"{half}.jsonl")))


def is_verbatim(gold: GoldSegment, documents: Path) -> bool:
    """Whether every piece of the evidence stands in the document's plain text, whatever its case, signs and blanks.

    Args:
        gold: The gold segment, of a document of the list.
        documents: Folder with the documents.

    Raises:
        DataError: The document is not of the list.
    """
    text = _plain_text(gold.document, documents)
    return all(_letters(piece) in text for piece in gold.evidence)


def missing(asked: Iterable[Question], passages: Iterable[Passage]) -> list[tuple[Question, GoldSegment]]:
    """Gold segments that no passage holds whole, with their questions."""
    of: dict[object, list[Passage]] = {}
    for passage in passages:
        of.setdefault((passage.metadata or {}).get("document"), []).append(passage)
    return [
        (question, gold)
        for question in asked
        for gold in question.gold.segments
        if not any(is_relevant(passage, gold) for passage in of.get(gold.document, ()))
    ]


@cache
def _plain_text(document: str, documents: Path) -> str:
    entry = next((each for each in catalogue() if each.file == document), None)
    if entry is None:
        raise DataError(f"{document} is no document of the list ({', '.join(each.file for each in catalogue())}).")
    return _letters(_read(entry, documents))


def _read(entry: CatalogueEntry, documents: Path) -> str:
    choices = (documents / entry.half / entry.file, documents / entry.file)
    file = next((each for each in choices if each.is_file()), None)
    if file is None:
        raise MissingInputError(
            f"{choices[0]} does not exist; fetch it: python -m tests.documents.benchmark.fetch --out {documents}"
        )
    if entry.format == "pdf":
        return _pdf_text(file)
    if entry.format == "html":
        page = html.document_fromstring(file.read_bytes())
        etree.strip_elements(page, "script", "style", with_tail=False)
        return page.text_content()
    if entry.format == "docx":
        with zipfile.ZipFile(file) as folder:
            root = etree.fromstring(folder.read("word/document.xml"))
        return "\n".join("".join(each.itertext(f"{_WORD_TEXT}t")) for each in root.iter(f"{_WORD_TEXT}p"))
    return file.read_text(encoding="utf-8")


def _pdf_text(file: Path) -> str:
    if not shutil.which("pdftotext"):
        raise UserError("Reading PDFs as plain text needs pdftotext: apt-get install poppler-utils")
    ran = subprocess.run(["pdftotext", "-enc", "UTF-8", file, "-"], capture_output=True, check=False)
    if ran.returncode:
        raise DataError(f"pdftotext cannot read {file}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout.decode("utf-8")


def _letters(text: str) -> str:
    """Letters and digits only: a word broken at a line's end, or joined to the heading before it, is found too."""
    return "".join(_LETTERS.findall(nfkc(text).casefold()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Check all questions and print what is not found."""
    options = argparse.ArgumentParser(
        "python -m tests.documents.benchmark.check_questions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--documents", type=Path, required=True, help="folder with the documents")
    options.add_argument("--indexes", type=Path, nargs="*", default=[], help="index folders of these documents")
    options.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    given = options.parse_args(arguments)
    asked = {half: questions(half) for half in given.halves}
    of_half = {one.id: half for half in asked for one in asked[half]}
    everything = [one for half in asked.values() for one in half]
    lost = [(one, gold) for one in everything for gold in one.gold.segments if not is_verbatim(gold, given.documents)]
    checks = {"plain text": lost}
    for folder in given.indexes:
        checks[str(folder)] = missing(everything, PassageStore(folder))
    total = {half: sum(len(one.gold.segments) for one in asked[half]) for half in asked}
    rows = [
        [name, *(str(total[half] - sum(of_half[one.id] == half for one, _ in without)) for half in asked)]
        for name, without in checks.items()
    ]
    head = ["gold segments held whole by", *(f"{half} (of {total[half]})" for half in asked)]
    print("\n".join(markdown_table(head, rows)))
    for name, without in checks.items():
        for one, gold in without:
            print(f"- {name}: {one.id}, {gold.document}: {' / '.join(gold.evidence)}")


if __name__ == "__main__":
    main()
