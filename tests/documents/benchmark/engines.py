"""Document readers of others, each run in a process and environment of its own: a file in, Markdown and seconds out.

    PYTHON tests/documents/benchmark/engines.py ENGINE FILE MARKDOWN

PYTHON is an environment that has the engine; this file itself needs the standard library only. It writes the Markdown
and prints one line of JSON: seconds, pages and version, or why there is no result.
"""

import importlib
import importlib.metadata
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def opendataloader(package: Any, file: str) -> str:
    """Starts Java for each file, as the package does; the seconds include that."""
    with tempfile.TemporaryDirectory() as folder:
        package.convert(file, output_dir=folder, format="markdown", quiet=True, image_output="off")
        return next(Path(folder).rglob("*.md")).read_text(encoding="utf-8")


def liteparse(package: Any, file: str) -> str:
    """By its text layer, without its OCR."""
    options = {"output_format": "markdown", "ocr_enabled": False, "image_mode": "off", "quiet": True}
    return package.LiteParse(**options).parse(file).text


def pdfplumber(package: Any, file: str) -> str:
    """Plain text of the pages, and their tables by its default settings."""
    parts = []
    with package.open(file) as document:
        for page in document.pages:
            parts.append(page.extract_text())
            for rows in filter(None, page.extract_tables()):
                escaped = [[(cell or "").replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
                first, *lines = ["| " + " | ".join(row) + " |" for row in escaped]
                parts.append("\n".join([first, "|" + " --- |" * len(rows[0]), *lines]))
    return "\n\n".join(parts)


def pdfium(package: Any, file: str) -> str:
    """Plain text in the order of the file."""
    with package.PdfDocument(file) as document:
        return "\n\n".join(page.get_textpage().get_text_bounded() for page in document)


ENGINES: dict[str, tuple[str, Callable[[Any, str], str]]] = {  # package, and a file's text by it
    "edgeparse": ("edgeparse", lambda package, file: package.convert(file, format="markdown")),
    "markitdown": (
        "markitdown",
        lambda package, file: package.MarkItDown(enable_plugins=False).convert_local(file).markdown,
    ),
    "pdf_oxide": ("pdf_oxide", lambda package, file: package.PdfDocument(file).to_markdown_all()),
    "opendataloader": ("opendataloader-pdf", opendataloader),
    "liteparse": ("liteparse", liteparse),
    "pdf_inspector": ("pdf-inspector", lambda package, file: package.process_pdf(file).markdown or ""),
    "pypdf": ("pypdf", lambda package, file: "\n\n".join(p.extract_text() for p in package.PdfReader(file).pages)),
    "pdfplumber": ("pdfplumber", pdfplumber),
    "pdfium": ("pypdfium2", pdfium),
}


def main(engine: str, file: str, markdown: str) -> None:
    """Convert a file and say how long it took; the engine is loaded before the clock starts."""
    package, convert = ENGINES[engine]
    report: dict[str, object] = {}
    try:
        loaded = importlib.import_module(package.replace("-", "_"))
        report["version"] = importlib.metadata.version(package)
        start = time.perf_counter()
        text = convert(loaded, file)
        report["seconds"] = time.perf_counter() - start
        Path(markdown).write_text(text, encoding="utf-8")
    except Exception as error:  # whatever an engine of others raises is its result
        report["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    print("\n" + json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
