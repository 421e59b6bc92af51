"""The front matter of a document: authors, addresses, editions. They look like headings and are none."""

import re
from collections.abc import Container, Sequence

from documents.pdf.heading_candidates import Group
from documents.pdf.spacing import Body
from documents.pdf.title import Title

_TEXT_LINES, _TEXT_CHARACTERS = 4, 250  # of the first paragraph
_OWN_NAMES = re.compile(
    r"(?:executive )?(?:abstract|summary|preface|foreword|introduction|overview|dedication|acknowledge?ments?|"
    r"zusammenfassung|vorwort|einleitung|résumé|préface|avant-propos|resumen|prefacio|introducción)",
    re.IGNORECASE,
)


def front_matter(
    groups: Sequence[Group], title: Title, named: Container[int], contents: int | None, body: Body
) -> set[int]:
    """Which groups stand before the text.

    Up to the table of contents, or to the first heading that is sure, or to the first paragraph.

    A heading with one of the usual names for such is none of them; nor is one right above the first paragraph that
    looks like a later one.

    Args:
        groups: Of the document's lines.
        title: The document's title; if none is known, the text begins at once.
        named: Those that the outline or the table of contents names.
        contents: The item that the table of contents stood before.
        body: The style of the document's text.
    """
    if not title.is_known:
        return set()
    others = [at for at in range(len(groups)) if at not in title.groups]
    start = next((at for at in others if _begins_text(groups[at], at in named, contents, body)), 0)
    later = {group.style for group in groups[start + 1 :]}

    def is_heading(at: int) -> bool:
        above_text = at == start - 1 and groups[at].style in later and groups[at].last + 1 == groups[start].first
        return above_text or _OWN_NAMES.fullmatch(groups[at].text.strip(" .:")) is not None

    return {at for at in range(start) if at in title.groups or not is_heading(at)}


def _begins_text(group: Group, is_named: bool, contents: int | None, body: Body) -> bool:
    """Whether the text begins with a group at the latest."""
    if contents is not None:
        return group.first >= contents
    if is_named or (
        group.number is not None and group.number.sure and group.line.size >= body.size and group.line.bold
    ):
        return True
    if group.line.size < 0.95 * body.size:  # addresses
        return False
    in_size = group.line.size < 1.05 * body.size
    return (in_size and len(group.lines) >= _TEXT_LINES) or len(group.text) >= _TEXT_CHARACTERS
