"""The title of a document: what is printed largest on its first page, or the file's metadata."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from documents.normal_form import NO_TITLE
from documents.pdf.contents import ContentsEntry, key
from documents.pdf.heading_candidates import Group, join_lines
from documents.pdf.spacing import Body

_LARGER = 1.15  # body sizes
_MAX_CHARACTERS = 300
_NEAR = 3.0  # font sizes between the parts of a title
_FIRST_PAGES = 3  # a cover may have no text
_IMPLAUSIBLE = re.compile(
    rf"{NO_TITLE.pattern}|.*\.(?:docx?|odt|tex|dvi|indd|qxd|p65|pdf|xml|fo|html?|rtf|pptx?|xlsx?|md|rst|txt)|"
    r"(?:title|manuscript|report|slide|print|template|noname|default)\d*|.*[/\\].*",
    re.IGNORECASE,
)

_CODE = re.compile(r"[A-Z\d/._-]*\d[A-Z\d/._-]*")  # the number of a report or a paper


def plausible(title: str) -> bool:
    """Whether a title in a file's metadata may be one, and no file name or what an application fills in by itself."""
    return len(key(title)) >= 3 and len(title) <= _MAX_CHARACTERS and not _IMPLAUSIBLE.fullmatch(title.strip())


class Title(NamedTuple):
    """A document's title."""

    text: str
    groups: frozenset[int]  # that it is printed in
    is_known: bool  # whether it is more than the file's name


def find_title(
    groups: Sequence[Group], entries: Sequence[ContentsEntry], metadata: str, body: Body, name: str
) -> Title:
    """The title: what page and metadata agree on, or what is printed largest, or the metadata's, or the file's name.

    Args:
        groups: Of the document's lines.
        entries: Of its outline and its table of contents: what they name is a heading.
        metadata: The title in the file's metadata.
        body: The style of the document's text.
        name: The document's name, for when nothing else is found.
    """
    metadata = " ".join(metadata.split()) if plausible(metadata) else ""
    page = min((group.line.page for group in groups), default=1)
    first = [at for at, group in enumerate(groups) if group.line.page == page <= _FIRST_PAGES]
    for at in first:
        text = key(groups[at].text)
        if metadata and text and (text == key(metadata) or (len(text) > 8 and key(metadata).startswith(text))):
            title = _begun(groups, first, at)
            return title if text == key(metadata) else title._replace(text=metadata)
    named = {key(entry.title) for entry in entries}
    free = [at for at in first if _possible(groups, at, named, body)]
    if free:
        return _begun(
            groups, first, max(free, key=lambda at: (round(groups[at].line.size, 1), groups[at].line.bold, -at))
        )
    return Title(metadata or PurePosixPath(name).stem, frozenset(), bool(metadata))


def _possible(groups: Sequence[Group], at: int, named: set[str], body: Body) -> bool:
    """Whether a group may be the title.

    Large, without a number, named nowhere as a heading, its style not that of later headings.
    """
    group = groups[at]
    if group.line.size < _LARGER * body.size or group.number is not None or len(group.text) > _MAX_CHARACTERS:
        return False
    if len(key(group.text)) < 3 or key(group.text) in named or _CODE.fullmatch(group.text):
        return False
    later = sum(other.style == group.style and other.line.page > group.line.page for other in groups)
    return later < 2


def _begun(groups: Sequence[Group], first: Sequence[int], at: int) -> Title:
    """The title that a group begins, with those of the first page that continue it below in the same style."""
    found = [at]
    for before, after in pairwise(groups[at : first[-1] + 1]):
        distance = after.lines[0].baseline - before.line.baseline
        if after.style != before.style or not 0 < distance < _NEAR * before.line.size:
            break
        found.append(found[-1] + 1)
    return Title(join_lines([groups[at].text for at in found]), frozenset(found), True)
