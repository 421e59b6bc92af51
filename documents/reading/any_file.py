"""A file of any type as a document, by what its content says."""

from dataclasses import replace

from common.packages import require
from documents.left_out import LeftOut
from documents.reading.file_types import PACKAGES, FileType, file_type, wrong_suffix
from documents.reading.image_files import ImageLoader
from documents.reading.text_encoding import decoded
from documents.reading.text_reading import parse_text
from documents.records import Document


def read_document(data: bytes, name: str, outline: bool = True, load_image: ImageLoader | None = None) -> Document:
    """A document from its file's bytes.

    Args:
        data: The file's bytes.
        name: Its name; a suffix that does not fit its content is noted.
        outline: Whether the bookmarks of a PDF file are used to find its headings.
        load_image: Reads images that HTML and Markdown files link to; None leaves them out.

    Raises:
        DataError: If the file is empty, broken, encrypted or of another type.
        UserError: If a package is missing.
    """
    kind = file_type(data, name)
    check_packages(kind)
    document = _read(kind, data, name, outline, load_image)
    note = wrong_suffix(kind, name)
    return replace(document, left_out=(note, *document.left_out)) if note else document


def check_packages(kind: FileType) -> None:
    """Raise UserError if a package is missing that files of a type need."""
    if PACKAGES[kind]:
        require("documents", f"reading {kind} files", modules=tuple(PACKAGES[kind]))


def _read(kind: FileType, data: bytes, name: str, outline: bool, load_image: ImageLoader | None) -> Document:
    if kind == "pdf":
        from documents.reading.pdf_reading import parse_pdf

        return parse_pdf(data, name, outline)
    if kind == "docx":
        from documents.reading.docx_reading import parse_docx

        return parse_docx(data, name)
    if kind == "html":
        from documents.reading.html_reading import parse_html

        return parse_html(data, name, load_image)
    left_out = LeftOut()
    if kind == "text":
        return parse_text(decoded(data, left_out), name, left_out)
    from documents.reading.markdown_reading import parse_markdown

    return parse_markdown(decoded(data, left_out), name, load_image, left_out)
