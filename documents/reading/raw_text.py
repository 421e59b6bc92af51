"""The text of a PDF file as pdfium gives it, form fields and notes too, without any reading of its layout.

Conversions are measured against it.
"""

from contextlib import closing

from pypdfium2 import PdfPage

from documents.left_out import LeftOut
from documents.reading.pdf_reading import MAX_PAGES, each_page, open_pdf


def raw_text(data: bytes, max_pages: int = MAX_PAGES) -> str:
    """The text of the first pages, in the order of the file; pages that cannot be read have none.

    Args:
        data: A PDF file that can be opened.
        max_pages: Number of pages.
    """

    def text_of(page: PdfPage, number: int) -> str:
        with closing(page.get_textpage()) as text:
            return text.get_text_bounded()

    with closing(open_pdf(data, "")) as file:
        return "\n".join(each_page(file, max_pages, LeftOut(), [], text_of))
