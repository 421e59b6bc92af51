"""The text of a PDF file as pdfium gives it, form fields and notes too, without any reading of its layout.

Conversions are measured against it.
"""

from contextlib import closing

from documents.left_out import LeftOut


def raw_text(data: bytes, max_pages: int) -> str:
    """The text of the first pages, in the order of the file; pages that cannot be read have none.

    Args:
        data: A PDF file that can be opened.
        max_pages: Number of pages.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    from documents.pdf.annotations import open_page

    texts = []
    with closing(PdfDocument(data)) as file:
        file.init_forms()
        for place in range(min(len(file), max_pages)):
            try:
                with closing(open_page(file, place, LeftOut())) as page, closing(page.get_textpage()) as text:
                    texts.append(text.get_text_bounded())
            except PdfiumError:
                continue
    return "\n".join(texts)
