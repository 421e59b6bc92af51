"""A PDF file's outline (its bookmarks)."""

from itertools import islice

from pypdfium2 import PdfDocument

from documents.pdf.contents import ContentsEntry

MAX_ENTRIES = 20_000
_DEPTH = 15


def outline(document: PdfDocument) -> list[ContentsEntry]:
    """Entries of the outline in its order; empty if it has none.

    One that holds all others is left out: it names the document.
    """
    found: list[ContentsEntry] = []
    for bookmark in islice(document.get_toc(max_depth=_DEPTH), MAX_ENTRIES):
        title = " ".join(bookmark.get_title().split())
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if title:
            found.append(ContentsEntry(title, bookmark.level + 1, page=page + 1 if page is not None else None))
    top = [entry for entry in found if entry.level == 1]
    if len(top) == 1 and len(found) > 2 and found[0].level == 1:
        return [ContentsEntry(entry.title, entry.level - 1, entry.page) for entry in found[1:]]
    return found
