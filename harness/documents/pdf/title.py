"""The title of a document: what is printed largest on its first page, or the file's metadata."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from harness.documents.pdf.contents import Entry, key
from harness.documents.pdf.heading_candidates import Group, join_lines
from harness.documents.pdf.spacing import Body

_LARGER = 1.15  # body sizes
_MOST_CHARACTERS = 300
_FIRST_PAGES = 3  # a cover may have no text
_IMPLAUSIBLE = re.compile(
    r"untitled.*|.*\.(?:docx?|odt|tex|dvi|indd|qxd|p65|pdf|xml|fo|html?|rtf|pptx?|xlsx?|md|rst|txt)|(?:microsoft word|powerpoint presentation)\b.*|"
    r"(?:document|title|manuscript|report|slide|print|template|noname|none|null|default)\d*|.*[/\\].*",
    re.IGNORECASE,
)

_CODE = re.compile(r"[A-Z\d/._-]*\d[A-Z\d/._-]*")  # the number of a report or a paper


def plausible(title: str) -> bool:
    """Whether a title in a file's metadata may be one, and no file name or what an application fills in by itself."""
    return len(key(title)) >= 3 and len(title) <= _MOST_CHARACTERS and not _IMPLAUSIBLE.fullmatch(title.strip())


def find_title(
    groups: Sequence[Group], entries: Sequence[Entry], metadata: str, body: Body, name: str
) -> tuple[str, set[int]]:
    """The title, and the groups that it is printed in.

    Args:
        groups: Of the document's lines.
        entries: Of its outline and its table of contents: what they name is a heading.
        metadata: The title in the file's metadata.
        body: The style of the document's text.
        name: The document's name, for when nothing else is found.
    """
    metadata = " ".join(metadata.split()) if plausible(metadata) else ""
    first = [at for at, group in enumerate(groups) if group.line.page <= _FIRST_PAGES]
    pages = {groups[at].line.page for at in first}
    first = [at for at in first if groups[at].line.page == min(pages)]
    for at in first:  # a title that metadata and page agree on
        text = key(groups[at].text)
        if metadata and text and (text == key(metadata) or (len(text) > 8 and key(metadata).startswith(text))):
            return _text(groups, first, at) if text == key(metadata) else metadata, _with_rest(groups, first, at)
    named = {key(entry.title) for entry in entries}
    free = [at for at in first if _possible(groups, at, named, body)]
    if free:
        best = max(free, key=lambda at: (round(groups[at].line.size, 1), groups[at].line.bold, -at))
        return _text(groups, first, best), _with_rest(groups, first, best)
    return metadata or PurePosixPath(name).stem, set()


def _possible(groups: Sequence[Group], at: int, named: set[str], body: Body) -> bool:
    """Whether a group may be the title: large, without a number, named nowhere as a heading, its style not that of later headings."""
    group = groups[at]
    if group.line.size < _LARGER * body.size or group.number is not None or len(group.text) > _MOST_CHARACTERS:
        return False
    if len(key(group.text)) < 3 or key(group.text) in named or _CODE.fullmatch(group.text):
        return False
    later = sum(other.style == group.style and other.line.page > group.line.page for other in groups)
    return later < 2


def _with_rest(groups: Sequence[Group], first: Sequence[int], at: int) -> set[int]:
    """A group with those that continue it below in the same style."""
    found = {at}
    while (
        at + 1 in first
        and groups[at + 1].style == groups[at].style
        and (groups[at + 1].above or 9.0) * 12 < 3 * groups[at].line.size
    ):
        at += 1
        found.add(at)
    return found


def _text(groups: Sequence[Group], first: Sequence[int], at: int) -> str:
    return join_lines([groups[part].text for part in sorted(_with_rest(groups, first, at))])
