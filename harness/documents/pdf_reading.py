"""PDF files as documents, by pdfium and without a model: text, fonts and drawn lines give headings, paragraphs, tables and images."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING

from common.documents import Document
from common.errors import DataError, UserError
from harness.documents.normal_form import normalized
from harness.documents.pdf.blocks import blocks
from harness.documents.pdf.contents import table_of_contents
from harness.documents.pdf.continued import join_continued, without_repeated
from harness.documents.pdf.figures import find_figures
from harness.documents.pdf.footnotes import footnotes
from harness.documents.pdf.front_matter import front_matter
from harness.documents.pdf.heading_candidates import groups
from harness.documents.pdf.headings import headings, named_groups
from harness.documents.pdf.lines import Line, Placed, page_lines
from harness.documents.pdf.page import Box, Page
from harness.documents.pdf.reading import read
from harness.documents.pdf.running_headers import running
from harness.documents.pdf.spacing import body_of
from harness.documents.pdf.tables import find_tables
from harness.documents.pdf.title import find_title

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

MOST_PAGES = 5000


class PdfFormatter:
    """Reads PDF files.

    Args:
        outline: Whether headings are looked up in the file's outline (bookmarks); without it, pages alone say what is a heading.
        most_pages: Pages of a file that are read; the document's `left_out` says how many follow.
    """

    def __init__(self, outline: bool = True, most_pages: int = MOST_PAGES) -> None:
        if most_pages < 1:
            raise UserError(f"most_pages is {most_pages}; it must be at least 1.")
        self._outline = outline
        self._most_pages = most_pages

    def read(self, data: bytes, name: str) -> Document:
        """A document from a PDF file's bytes, in normal form.

        Raises:
            DataError: If the file is broken, encrypted or no PDF file.
            UserError: If pypdfium2 is not installed.
        """
        check_installed()
        with closing(_open(data, name)) as file:
            return normalized(self._read(file, name))

    def _read(self, file: "PdfDocument", name: str) -> Document:
        from pypdfium2 import PdfiumError

        from harness.documents.pdf.outline import outline
        from harness.documents.pdf.read_page import read_page

        count = len(file)
        pieces: list[Line] = []
        placed: dict[int, list[Placed]] = {}
        heights: dict[int, float] = {}
        without_text, broken = [], []
        for number in range(1, min(count, self._most_pages) + 1):
            try:
                with closing(file[number - 1]) as page:
                    drawn = read_page(page, number)
                    tables = find_tables(drawn)
                    figures = find_figures(page, drawn, [box for box, _ in tables])
            except PdfiumError:
                broken.append(number)
                continue
            if not drawn.words and drawn.bitmaps:
                without_text.append(number)
            placed[number] = [Placed(table, box, number) for box, table in tables]
            placed[number] += [Placed(figure, box, number) for box, figure in figures]
            heights[number] = drawn.height
            pieces += page_lines(_without(drawn, [item.box for item in placed[number]]))
        left_out = [f"{pages}: no text (scanned?)" for pages in _ranges(without_text)]
        left_out += [f"{pages}: broken" for pages in _ranges(broken)]
        if count > self._most_pages:
            left_out.append(f"{_ranges(range(self._most_pages + 1, count + 1))[0]}: more than {self._most_pages} pages")
        items = join_continued(_reading(pieces, without_repeated(placed), heights))
        printed, taken = table_of_contents(items)
        bookmarks = outline(file) if self._outline else []
        body = body_of([item for item in items if isinstance(item, Line)])
        grouped = groups(items, taken, body)
        metadata = file.get_metadata_value("Title")
        title, printed_title = find_title(grouped, [*bookmarks, *printed], metadata, body, name)
        named = named_groups(grouped, [source for source in (bookmarks, printed) if source], body)
        front = front_matter(grouped, printed_title, named, min(taken, default=None), body)
        found = headings(items, grouped, named, body, front | printed_title)
        aside = taken | {at for group in printed_title for at in range(grouped[group].first, grouped[group].last + 1)}
        content = blocks(items, found, footnotes(items, body), aside, body)
        return Document(name, title, tuple(content), count, tuple(left_out))


def check_installed() -> None:
    """Raise UserError if the package that reads PDF files is missing."""
    if find_spec("pypdfium2") is None:
        raise UserError(
            "PDF files are read with pypdfium2, which is not installed: pip install 'lightning-rag[documents]'."
        )


def _open(data: bytes, name: str) -> "PdfDocument":
    """An open PDF file."""
    from pypdfium2 import PdfDocument, PdfiumError, raw

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
    return file


def _without(page: Page, boxes: Sequence[Box]) -> Page:
    """A page without the words whose middle is inside a box."""
    if not boxes:
        return page
    return replace(page, words=tuple(word for word in page.words if not any(_inside(word.box, box) for box in boxes)))


def _inside(word: Box, box: Box) -> bool:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return box.left <= x <= box.right and box.top <= y <= box.bottom


def _reading(pieces: Sequence[Line], placed: dict[int, list[Placed]], heights: dict[int, float]) -> list[Line | Placed]:
    """What stands on the pages in reading order, without running headers and footers."""
    left_out = running(pieces, heights)
    kept = {
        page: list(found)
        for page, found in groupby((p for at, p in enumerate(pieces) if at not in left_out), key=lambda p: p.page)
    }
    return [item for page in heights for item in read(kept.get(page, []), placed[page])]


def _ranges(pages: Sequence[int]) -> list[str]:
    """Numbers in rising order as "page 3" and "pages 5-9"."""
    found: list[list[int]] = []
    for page in pages:
        if found and page == found[-1][-1] + 1:
            found[-1].append(page)
        else:
            found.append([page])
    return [f"page {run[0]}" if len(run) == 1 else f"pages {run[0]}-{run[-1]}" for run in found]
