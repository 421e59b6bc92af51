"""The title of a document: what is printed largest on its first page, or the file's metadata."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from documents.pdf.contents import ContentsEntry, key
from documents.pdf.heading_candidates import Group, join_lines
from documents.pdf.spacing import Body

_LARGER = 1.15  # body sizes
_MAX_CHARACTERS = 300
_SAME_WORDS = 0.6  # of the metadata's
_NEAR = 3.0  # font sizes between the parts of a title
_FIRST_PAGES = 3  # a cover may have no text
_IMPLAUSIBLE = re.compile(
    r"untitled.*|.*\.(?:docx?|odt|tex|dvi|indd|qxd|p65|pdf|xml|fo|html?|rtf|pptx?|xlsx?|md|rst|txt)|(?:microsoft word|"
    r"powerpoint presentation)\b.*|(?:document|title|manuscript|report|slide|print|template|noname|none|null|"
    r"default)\d*|.*[/\\].*",
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
    first = [at for at, group in enumerate(groups) if group.line.page <= _FIRST_PAGES]
    pages = {groups[at].line.page for at in first}
    first = [at for at in first if groups[at].line.page == min(pages)]
    for at in first:
        text = key(groups[at].text)
        if metadata and text and (text == key(metadata) or (len(text) > 8 and key(metadata).startswith(text))):
            printed = _with_rest(groups, first, at)
            return Title(_text(groups, printed) if text == key(metadata) else metadata, printed, True)
    named = {key(entry.title) for entry in entries}
    free = [at for at in first if _possible(groups, at, named, body)]
    if not free:  # in the text's size, but of the same words
        free = [at for at in first if _shared(groups[at].text, metadata) >= _SAME_WORDS]
    if free:
        best = max(free, key=lambda at: (round(groups[at].line.size, 1), groups[at].line.bold, -at))
        printed = _with_rest(groups, first, best)
        return Title(_text(groups, printed), printed, True)
    return Title(metadata or PurePosixPath(name).stem, frozenset(), bool(metadata))


def _shared(text: str, metadata: str) -> float:
    """The share of the metadata's words that a text has, if it has not many more."""
    one, other = set(text.casefold().split()), set(metadata.casefold().split())
    return len(one & other) / len(other) if len(other) >= 3 and len(one) <= 2 * len(other) else 0.0


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


def _with_rest(groups: Sequence[Group], first: Sequence[int], at: int) -> frozenset[int]:
    """A group with those that continue it below in the same style."""
    found = {at}
    while at + 1 in first and groups[at + 1].style == groups[at].style and _near(groups[at], groups[at + 1]):
        at += 1
        found.add(at)
    return frozenset(found)


def _near(one: Group, other: Group) -> bool:
    distance = other.lines[0].baseline - one.line.baseline
    return 0 < distance < _NEAR * one.line.size


def _text(groups: Sequence[Group], printed: Iterable[int]) -> str:
    return join_lines([groups[at].text for at in sorted(printed)])
