"""Whether the evidence of the questions about the real documents stands in the documents and in an index's passages.

    python -m tests.documents.benchmark.check_questions --documents FOLDER \
        --indexes indexes/real/bm25 indexes/real-chunks/bm25

Each index folder was built by `infer.py index --documents`. Prints Markdown: how many gold segments each one holds
whole, and which it does not: a retriever over it cannot find these, and they count as misses. The documents' plain text
is read by other tools than this project's reader: PDFs by poppler's `pdftotext`, which must be installed; of HTML and
Word tags are taken out.
"""

import argparse
import io
import re
import subprocess
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from html import unescape
from pathlib import Path

from common.errors import UserError
from common.gold_segments import is_relevant
from common.records import GoldSegment, Passage, Question, nfkc
from datamodules.formats.reading import read_questions
from harness.evaluation.tables import markdown_table
from harness.indexing.passage_store import PassageStore
from tests.documents.benchmark.catalogue import FILE, catalogue
from tests.documents.benchmark.truth.editions import unpacked

HALVES = ("validation", "test")
FOLDER = FILE.with_name("questions")
_LETTERS = re.compile(r"[^\W_]+")


def questions(half: str) -> list[Question]:
    """The questions of a half."""
    return list(read_questions("flashrag", str(FOLDER / f"{half}.jsonl")))


def is_verbatim(gold: GoldSegment, documents: Path) -> bool:
    """Whether every piece of the evidence stands in the document's plain text, whatever its case, signs and blanks.

    Args:
        gold: The gold segment, of a document of the list.
        documents: Folder with the documents.
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
    (entry,) = (each for each in catalogue() if each.file == document)
    choices = (documents / entry.half / entry.file, documents / entry.file)
    return _letters(_read(next((each for each in choices if each.is_file()), choices[0])))


def _read(file: Path) -> str:
    """What a file says; of HTML and Word all that stands outside of their tags."""
    if file.suffix == ".pdf" and file.is_file():
        try:
            ran = subprocess.run(["pdftotext", "-enc", "UTF-8", file, "-"], capture_output=True, check=True)
        except FileNotFoundError as error:
            raise UserError("Reading PDFs as plain text needs pdftotext: apt-get install poppler-utils") from error
        return ran.stdout.decode("utf-8")
    data = unpacked(file)
    if file.suffix == ".docx":
        data = zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml")
    text = data.decode("utf-8")
    return text if file.suffix == ".md" else unescape(re.sub(r"<[^>]*>", "", text))


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
    everything = [one for half in asked.values() for one in half]
    lost = [(one, gold) for one in everything for gold in one.gold.segments if not is_verbatim(gold, given.documents)]
    checks = {"plain text": lost} | {str(path): missing(everything, PassageStore(path)) for path in given.indexes}
    total = {half: sum(len(one.gold.segments) for one in asked[half]) for half in asked}
    rows = [
        [name, *(str(total[half] - sum(one in asked[half] for one, _ in without)) for half in asked)]
        for name, without in checks.items()
    ]
    head = ["gold segments held whole by", *(f"{half} (of {total[half]})" for half in asked)]
    print("\n".join(markdown_table(head, rows)))
    for name, without in checks.items():
        for one, gold in without:
            print(f"- {name}: {one.id}, {gold.document}: {' / '.join(gold.evidence)}")


if __name__ == "__main__":
    main()
