"""Documents by docling, an engine with models of its own, as far as its Markdown tells.

Headings, prose, lists, code, tables.
"""

import io
import re

from common.documents import Document
from common.errors import DataError
from harness.documents.reading.markdown_reading import parse_markdown

_PAGE_BREAK = "<!-- docling page break -->"


def parse_by_docling(data: bytes, name: str) -> Document:
    """A document from a file that docling reads, in normal form.

    Raises:
        DataError: If docling cannot read the file.
    """
    from docling.document_converter import DocumentConverter
    from docling.exceptions import ConversionError
    from docling_core.types.io import DocumentStream

    try:
        result = DocumentConverter().convert(DocumentStream(name=name.rpartition("/")[2], stream=io.BytesIO(data)))
    except ConversionError as error:
        raise DataError(f"{name} cannot be read by docling: {error}") from error
    text = result.document.export_to_markdown(page_break_placeholder=_PAGE_BREAK)
    return from_docling(text, name, len(result.document.pages) or None)


def from_docling(text: str, name: str, pages: int | None) -> Document:
    """A document from docling's Markdown.

    Args:
        text: With a mark between pages.
        name: The document's name.
        pages: Number of pages; None where the format has none.
    """
    parts = re.split(rf"\s*{re.escape(_PAGE_BREAK)}\s*", text)
    if pages is not None:
        parts = [f"<!-- page {number} -->\n\n{part}" for number, part in enumerate(parts, start=1)]
        parts.insert(0, f"<!-- pages {pages} -->")
    return parse_markdown("\n\n".join(parts), name)
