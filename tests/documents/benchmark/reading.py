"""Documents of the list as engines read them.

Ours in this process, others by `engines.py` in an environment of their own.
"""

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import UserError
from common.files import create_parents, write_json, write_text
from documents.markdown_writing import to_markdown
from documents.normal_form import title_of
from documents.reading.any_file import read_document
from documents.reading.markdown_reading import parse_markdown
from documents.records import Document, Heading

OURS = {"ours": True, "ours-without-bookmarks": False}  # whether a PDF's bookmarks are used
_MAX_SECONDS = 900  # for one document


class ReadDocument(NamedTuple):
    """What an engine made of a document."""

    document: Document | None  # None if there is no result
    seconds: float
    note: str = ""  # the engine's version, or why there is no result


def reads(engine: str, format_: str) -> bool:
    """Whether an engine reads files of a format."""
    return format_ == "pdf" or engine in (*OURS, "markitdown")


def read_by(engine: str, entry: Any, file: Path, python: str, work: Path) -> ReadDocument:
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
        return ReadDocument(None, 0, report["error"])
    document = parse_markdown(markdown.read_text(encoding="utf-8"), entry.file)
    if document.title != title_of(entry.file):  # the only first-level heading, which need not be the title
        document = replace(document, blocks=(Heading(document.title, 1), *document.blocks))
    return ReadDocument(document, report["seconds"], report["version"])


def _run(engine: str, file: Path, markdown: Path, python: str) -> Any:
    if not python:
        raise UserError(f"--engines {engine} needs --python PYTHON, of an environment that has it.")
    command = [python, Path(__file__).with_name("engines.py"), engine, file, markdown]  # the user's own Python
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MAX_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {_MAX_SECONDS} s"}
    except subprocess.CalledProcessError as error:
        return {"error": f"exit {error.returncode}: {error.stderr.strip()[-200:]}"}
    except OSError as error:
        raise UserError(f"--python {python} does not run ({error.strerror}).") from error
    return json.loads(done.stdout.strip().splitlines()[-1])
