"""Documents of the list as engines read them.

Ours in this process, others by `engines.py` in an environment of their own.
"""

import json
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import UserError
from common.files import create_parents, write_json, write_text
from documents.markdown_writing import to_markdown
from documents.normal_form import title_of
from documents.reading.any_file import read_document
from documents.reading.markdown_reading import parse_markdown
from documents.records import Document, Heading
from tests.documents.benchmark.catalogue import CatalogueEntry
from tests.documents.benchmark.engines import ENGINES

OURS = {"ours": True, "ours-without-bookmarks": False}  # whether a PDF's bookmarks are used
_MAX_SECONDS = 900  # for one document


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What an engine made of a document."""

    document: Document | None  # None if there is no result
    seconds: float | None
    note: str = ""  # the engine's version, or why there is no result


def formats(engine: str) -> tuple[str, ...]:
    """The formats that an engine reads."""
    return ("pdf", "html", "docx", "markdown") if engine in OURS else ENGINES[engine][2]


def read_by(engine: str, entry: CatalogueEntry, file: Path, python: str, work: Path) -> ReadDocument:
    """Let an engine read a document.

    Args:
        engine: Its name.
        entry: The document.
        file: Where it lies.
        python: The Python of an environment that has the engine, for an engine of others.
        work: Folder for Markdown and times; what lies there already of an engine of others is not made again.
    """
    markdown = work / engine / f"{entry.id}.md"
    create_parents(markdown)
    if engine in OURS:
        data = file.read_bytes()
        start = time.perf_counter()
        document = read_document(data, entry.file, OURS[engine])
        seconds = time.perf_counter() - start
        text = to_markdown(document)
        write_text(markdown, text)
        return ReadDocument(parse_markdown(text, entry.file), seconds)
    report_file = markdown.with_suffix(".json")
    if not report_file.is_file():
        write_json(report_file, _run(engine, file, markdown, python))
    report = json.loads(report_file.read_text(encoding="utf-8"))
    if "error" in report:
        return ReadDocument(None, None, report["error"])
    document = parse_markdown(markdown.read_text(encoding="utf-8"), entry.file)
    if document.title != title_of(entry.file):  # the only first-level heading, which need not be the title
        document = replace(document, blocks=(Heading(document.title, 1), *document.blocks))
    return ReadDocument(document, report["seconds"], report["version"])


def _run(engine: str, file: Path, markdown: Path, python: str) -> dict[str, object]:
    script = Path(__file__).with_name("engines.py")
    try:
        done = subprocess.run(  # the user's own Python
            [python, str(script), engine, str(file), str(markdown)],
            capture_output=True,
            text=True,
            timeout=_MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {_MAX_SECONDS} s"}
    except OSError as error:
        raise UserError(f"--python {python} does not run ({error.strerror}).") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": f"exit {done.returncode}: {done.stderr.strip()[-200:]}"}
    report: dict[str, object] = json.loads(lines[-1])
    return report
