"""The structure of a document from what stands on its pages in reading order: its title and its blocks."""

from collections.abc import Sequence

from documents.left_out import LeftOut
from documents.pdf.blocks import blocks
from documents.pdf.contents import ContentsEntry, key, table_of_contents
from documents.pdf.footnotes import footnotes, marks_apart
from documents.pdf.front_matter import front_matter
from documents.pdf.heading_candidates import groups
from documents.pdf.heading_entries import known
from documents.pdf.headings import headings
from documents.pdf.lines import Line, Placed
from documents.pdf.run_in_headings import split_run_in
from documents.pdf.spacing import body_of
from documents.pdf.title import find_title
from documents.records import Block


def structure(
    items: Sequence[Line | Placed],
    bookmarks: Sequence[ContentsEntry],
    metadata: str,
    name: str,
    left_out: LeftOut,
) -> tuple[str, list[Block]]:
    """The title and the blocks of a document.

    Args:
        items: Lines, tables and images in reading order.
        bookmarks: The outline; empty if there is none or if it shall not be used.
        metadata: The title in the file's metadata, which may be anything.
        name: The document's name.
        left_out: Gets what is left out or moved.
    """
    body = body_of([item for item in items if isinstance(item, Line)])
    printed, contents = table_of_contents(items)
    for at in sorted(contents):
        left_out.text("tables of contents and lists of figures left out", getattr(items[at], "text", ""))
    text = [item for at, item in enumerate(items) if at not in contents]
    text = marks_apart(text, footnotes(text, body))
    text = split_run_in(text, body, {key(entry.title) for entry in (*bookmarks, *printed)})
    grouped = groups(text, body)
    title = find_title(grouped, [*bookmarks, *printed], metadata, body, name)
    named = known(bookmarks, grouped, body) or known(printed, grouped, body)
    front = front_matter(grouped, title, named, min(contents, default=None), body)
    found = headings(text, grouped, named, body, front | title.groups)
    title_items = {at for group in title.groups for at in range(grouped[group].first, grouped[group].last + 1)}
    return title.text, blocks(text, found, footnotes(text, body), title_items, body, left_out)
