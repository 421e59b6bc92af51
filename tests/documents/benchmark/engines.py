"""Document readers of others, each run in a process and environment of its own: a file in, Markdown and seconds out.

    PYTHON tests/documents/benchmark/engines.py ENGINE FILE MARKDOWN

PYTHON is an environment that has the engine; this file itself needs the standard library only. It writes the Markdown
and prints one line of JSON: seconds, pages and version, or why there is no result.
"""

import importlib.metadata
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def edgeparse(file: Path) -> str:
    import edgeparse

    return edgeparse.convert(str(file), format="markdown")


def markitdown(file: Path) -> str:
    from markitdown import MarkItDown

    return MarkItDown(enable_plugins=False).convert_local(str(file)).markdown


def pdf_oxide(file: Path) -> str:
    from pdf_oxide import PdfDocument

    return PdfDocument(str(file)).to_markdown_all()


def opendataloader(file: Path) -> str:
    """Starts Java for each file, as the package does; the seconds include that."""
    import opendataloader_pdf

    with tempfile.TemporaryDirectory() as folder:
        opendataloader_pdf.convert(str(file), output_dir=folder, format="markdown", quiet=True, image_output="off")
        return next(Path(folder).rglob("*.md")).read_text(encoding="utf-8")


def liteparse(file: Path) -> str:
    """By its text layer, without its OCR."""
    from liteparse import LiteParse

    return LiteParse(output_format="markdown", ocr_enabled=False, image_mode="off", quiet=True).parse(str(file)).text


def pdf_inspector(file: Path) -> str:
    from pdf_inspector import process_pdf

    return process_pdf(str(file)).markdown or ""


def pypdf(file: Path) -> str:
    from pypdf import PdfReader

    return "\n\n".join(page.extract_text() for page in PdfReader(file).pages)


def pdfplumber(file: Path) -> str:
    """Plain text of the pages, and their tables by its default settings."""
    import pdfplumber

    parts = []
    with pdfplumber.open(file) as document:
        for page in document.pages:
            parts.append(page.extract_text())
            parts += [_pipes(table) for table in page.extract_tables() if table]
    return "\n\n".join(parts)


def pdfium(file: Path) -> str:
    """Plain text in the order of the file, by pypdfium2."""
    import pypdfium2

    with pypdfium2.PdfDocument(file) as document:
        return "\n\n".join(page.get_textpage().get_text_bounded() for page in document)


def _pipes(rows: list[list[str | None]]) -> str:
    lines = [
        "| " + " | ".join((cell or "").replace("|", r"\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


PDF = ("pdf",)
ENGINES: dict[str, tuple[Callable[[Path], str], str, tuple[str, ...]]] = {  # function, package, formats
    "edgeparse": (edgeparse, "edgeparse", PDF),
    "markitdown": (markitdown, "markitdown", ("pdf", "html", "docx", "markdown")),
    "pdf_oxide": (pdf_oxide, "pdf_oxide", PDF),
    "opendataloader": (opendataloader, "opendataloader-pdf", PDF),
    "liteparse": (liteparse, "liteparse", PDF),
    "pdf_inspector": (pdf_inspector, "pdf-inspector", PDF),
    "pypdf": (pypdf, "pypdf", PDF),
    "pdfplumber": (pdfplumber, "pdfplumber", PDF),
    "pdfium": (pdfium, "pypdfium2", PDF),
}


def main(engine: str, file: str, markdown: str) -> None:
    """Convert a file and say how long it took; the engine is loaded before the clock starts."""
    convert, package, _ = ENGINES[engine]
    report: dict[str, object] = {}
    try:
        __import__(package.replace("-", "_"))
        report["version"] = importlib.metadata.version(package)
        start = time.perf_counter()
        text = convert(Path(file))
        report["seconds"] = time.perf_counter() - start
        Path(markdown).write_text(text, encoding="utf-8")
    except Exception as error:  # whatever an engine of others raises is its result
        report["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    print("\n" + json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
