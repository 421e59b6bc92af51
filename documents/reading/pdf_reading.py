"""PDF files as documents, by pdfium and without a model.

Text, fonts and drawn lines give headings, paragraphs, tables and images.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from typing import TypeVar

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, raw

from common.errors import DataError
from documents.left_out import LeftOut
from documents.normal_form import normalized
from documents.pdf.annotations import open_page
from documents.pdf.outline import outline
from documents.pdf.page_contents import in_reading_order, page_contents
from documents.pdf.structure import structure
from documents.records import Document

MAX_PAGES = 5000
Read = TypeVar("Read")


def parse_pdf(data: bytes, name: str, use_outline: bool = True, max_pages: int = MAX_PAGES) -> Document:
    """A document from a PDF file's bytes, in normal form.

    Args:
        data: The file's bytes.
        name: Its name.
        use_outline: Whether headings are looked up in the file's outline (bookmarks); without it, pages alone say what
            is a heading.
        max_pages: Pages of the file that are read; the document's `left_out` says how many follow.

    Raises:
        DataError: If the file is broken, encrypted or no PDF file.
    """
    broken: list[int] = []
    left_out = LeftOut()
    with closing(open_pdf(data, name)) as file:
        found = each_page(file, max_pages, left_out, broken, lambda page, at: page_contents(page, at, left_out))
        pages = list(found)
        scanned = [page.number for page in pages if page.has_bitmaps and not (page.pieces or any(page.labels))]
        for numbers in ranges(scanned):
            left_out.append(f"{numbers}: no text (scanned?)")
        for numbers in ranges(broken):
            left_out.append(f"{numbers}: broken")
        if len(file) > max_pages:
            rest = ranges(range(max_pages + 1, len(file) + 1))
            left_out.append(f"{rest[0]}: only the first {max_pages} pages are read")
        bookmarks = outline(file) if use_outline else []
        items = in_reading_order(pages, left_out)
        title, blocks = structure(items, bookmarks, file.get_metadata_value("Title"), name, left_out)
        return normalized(Document(name, title, tuple(blocks), len(file), left_out.lines))


def each_page(
    file: PdfDocument, most: int, left_out: LeftOut, broken: list[int], read: Callable[[PdfPage, int], Read]
) -> Iterator[Read]:
    """What is read of each of the first pages; `broken` gets the numbers of those that cannot be."""
    for number in range(1, min(len(file), most) + 1):
        try:
            with closing(open_page(file, number - 1, left_out)) as page:
                yield read(page, number)
        except PdfiumError:
            broken.append(number)


def open_pdf(data: bytes, name: str) -> PdfDocument:
    """An open PDF file, and its form."""
    try:
        file = PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise DataError(
                f"{name} is encrypted: remove its password, e.g. qpdf --decrypt --password=WORD IN OUT."
            ) from error
        if error.err_code == raw.FPDF_ERR_SECURITY:
            raise DataError(f"{name} is encrypted in a way that is not supported: remove its encryption.") from error
        raise DataError(f"{name} is broken or no PDF file: try to repair it, e.g. qpdf IN OUT.") from error
    file.init_forms()
    return file


def ranges(pages: Sequence[int]) -> list[str]:
    """Numbers in rising order as "page 3" and "pages 5-9"."""
    runs = (list(run) for _, run in groupby(enumerate(pages), lambda counted: counted[1] - counted[0]))
    spans = ((run[0][1], run[-1][1]) for run in runs)
    return [f"page {first}" if first == last else f"pages {first}-{last}" for first, last in spans]
