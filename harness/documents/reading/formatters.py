"""Formatters of all file types, and the choice among them."""

from dataclasses import replace
from importlib.util import find_spec

from common.documents import Document, Formatter
from common.errors import UserError
from harness.documents.reading.file_types import FileType, file_type, wrong_suffix
from harness.documents.reading.image_files import ImageLoader
from harness.documents.reading.text_encoding import decoded

_PACKAGES: dict[FileType, tuple[str, ...]] = {  # modules that a type needs
    "pdf": ("pypdfium2", "PIL"), "docx": ("docx", "lxml", "PIL"), "html": ("lxml", "PIL"),
    "markdown": ("markdown_it", "lxml", "PIL"),
}  # fmt: skip


class MarkdownFormatter:
    """Reads Markdown and plain text.

    Args:
        load_image: Reads images that the text links to.
    """

    def __init__(self, load_image: ImageLoader | None = None) -> None:
        self._load_image = load_image

    def read(self, data: bytes, name: str) -> Document:
        """A document from its file's bytes."""
        from harness.documents.reading.markdown_reading import parse_markdown

        return parse_markdown(decoded(data), name, self._load_image)


class HtmlFormatter:
    """Reads HTML pages.

    Args:
        load_image: Reads images that the page links to.
    """

    def __init__(self, load_image: ImageLoader | None = None) -> None:
        self._load_image = load_image

    def read(self, data: bytes, name: str) -> Document:
        """A document from its file's bytes.

        Raises:
            DataError: If the file is empty.
        """
        from harness.documents.reading.html_reading import parse_html

        return parse_html(data, name, self._load_image)


class DocxFormatter:
    """Reads Word documents."""

    def read(self, data: bytes, name: str) -> Document:
        """A document from its file's bytes.

        Raises:
            DataError: If the file is broken or encrypted, or unpacks to too much.
        """
        from harness.documents.reading.docx_reading import parse_docx

        return parse_docx(data, name)


class DoclingFormatter:
    """Reads any file that docling reads. It needs the package `docling` and, for PDF, the models that docling loads."""

    def __init__(self) -> None:
        if find_spec("docling") is None:
            raise UserError(
                "engine docling needs the package docling, which is not installed: pip install docling, or use engine "
                "auto."
            )

    def read(self, data: bytes, name: str) -> Document:
        """A document from its file's bytes.

        Raises:
            DataError: If docling cannot read the file.
        """
        from harness.documents.reading.docling_reading import parse_by_docling

        return parse_by_docling(data, name)


class _NamedByContent:
    """Reads files with another formatter, and notes a suffix that does not fit."""

    def __init__(self, formatter: Formatter, note: str) -> None:
        self._formatter, self._note = formatter, note

    def read(self, data: bytes, name: str) -> Document:
        document = self._formatter.read(data, name)
        return replace(document, left_out=(self._note, *document.left_out))


def formatter_for(
    data: bytes, name: str, engine: str = "auto", outline: bool = True, load_image: ImageLoader | None = None
) -> Formatter:
    """The formatter for a file, by its content.

    Args:
        data: The file's bytes.
        name: The document's name.
        engine: `auto` (this project's formatters) or `docling`.
        outline: Whether the bookmarks of a PDF file are used to find its headings.
        load_image: Reads images that HTML and Markdown files link to; None leaves them out.

    Raises:
        DataError: If the file is empty or of another type.
        UserError: If a package is missing.
    """
    kind = file_type(data, name)
    missing = [package for package in _PACKAGES[kind] if find_spec(package) is None]
    if missing:
        raise UserError(
            f"{kind} files are read with packages that are not installed ({', '.join(missing)}): pip install "
            "'lightning-rag[documents]'."
        )
    formatter: Formatter
    if engine == "docling":
        formatter = DoclingFormatter()
    elif kind == "pdf":
        from harness.documents.reading.pdf_reading import PdfFormatter

        formatter = PdfFormatter(outline)
    elif kind == "docx":
        formatter = DocxFormatter()
    else:
        formatter = (HtmlFormatter if kind == "html" else MarkdownFormatter)(load_image)
    note = wrong_suffix(kind, name)
    return _NamedByContent(formatter, note) if note else formatter
