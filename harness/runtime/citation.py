"""Where a passage stands in a document, and the tables and images that it shows: from its metadata."""

from typing import get_args

from common.records import Kind, Passage
from documents.records import PATH_SEPARATOR


def citation(passage: Passage) -> str:
    """Where a segment of a document stands, e.g. `manual.pdf, page 3: Installation > Power supply`.

    Empty for other passages.
    """
    about = passage.metadata or {}
    document, headings, kind = about.get("document"), about.get("headings"), about.get("kind")
    if not isinstance(document, str) or not isinstance(headings, list) or kind not in get_args(Kind):
        return ""
    copies, page, last_page = about.get("copies"), about.get("page"), about.get("last_page")
    cited = document
    if isinstance(copies, list):
        cited += f" (also {', '.join(map(str, copies))})"
    if page is not None:
        cited += f", page {page}" if last_page in (None, page) else f", pages {page} to {last_page}"
    if headings:
        cited += f": {PATH_SEPARATOR.join(map(str, headings))}"
    if "part" in about:
        cited += f" (part {about['part']} of {about.get('parts')})"
    return cited


def tables_of(passage: Passage) -> list[str]:
    """The ids of the tables that a segment is or a parent section holds; none for other passages."""
    about = passage.metadata or {}
    tables = about.get("tables")
    if isinstance(tables, list):
        return list(map(str, tables))
    return [passage.id] if about.get("kind") == "table" else []


def images_of(passage: Passage) -> list[str]:
    """The image files that a segment or a parent section shows; none for other passages."""
    about = passage.metadata or {}
    images = about.get("images", [about.get("image")])
    return [str(image) for image in images if image] if isinstance(images, list) else []
