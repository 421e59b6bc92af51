"""Run-in headings: bold words that begin and name a paragraph, split from the text that follows on the same line."""

import re
from collections.abc import Container, Sequence
from dataclasses import replace

from documents.pdf.contents import key
from documents.pdf.lines import Line, Placed
from documents.pdf.numbering import number_of
from documents.pdf.page import Box
from documents.pdf.spacing import Body, space_above

_MAX_WORDS = 10
_SET_APART = 1.15  # leadings above
_MIN_OF_A_KIND = 3  # in a document
_OTHERS = re.compile(  # what begins in bold and is no heading: theorems, captions, labels
    r"(?:theorem|lemma|proof|definition|corollary|proposition|remark|example|exercise|problem|solution|claim|case|step|"
    r"question|answer|fig(?:ure)?|tab(?:le)?|algorithm|listing|note|warning|caution|tip|important|abstract|summary|"
    r"keywords?|key words|index terms|q|a|todo)\b",
    re.IGNORECASE,
)


def split_run_in(items: Sequence[Line | Placed], body: Body, titles: Container[str]) -> list[Line | Placed]:
    """The items, with run-in headings as lines of their own.

    Args:
        items: What stands on the pages.
        body: The style of the document's text.
        titles: Keys of what the outline and the table of contents name.
    """
    found = {at for at, item in enumerate(items) if isinstance(item, Line) and _is_run_in(items, at, body)}
    numbered = {at for at in found if _numbered(items[at])}
    if len(found - numbered) < _MIN_OF_A_KIND:
        found = numbered
    result: list[Line | Placed] = []
    for at, item in enumerate(items):
        if isinstance(item, Line) and (at in found or (item.lead and key(_lead(item)) in titles)):
            result += _split(item)
        else:
            result.append(item)
    return result


def _is_run_in(items: Sequence[Line | Placed], at: int, body: Body) -> bool:
    """Whether the lead of a line looks like a heading.

    A sentence's end after a few words, on a line that is set apart.
    """
    line = items[at]
    if not isinstance(line, Line) or not line.lead or line.monospaced or abs(line.size - body.size) > 0.1 * body.size:
        return False
    lead = _lead(line)
    if space_above(items, at, body) < _SET_APART:
        return False
    if len(lead.split()) > _MAX_WORDS or _OTHERS.match(lead) or sum(char.isalpha() for char in lead) < 3:
        return False
    return _numbered(line) or (lead[0].isupper() and line.text[: line.lead].rstrip().endswith("."))


def _numbered(line: Line | Placed) -> bool:
    number = number_of(line.text) if isinstance(line, Line) else None
    return number is not None and number.depth > 1


def _lead(line: Line) -> str:
    return line.text[: line.lead].rstrip(" .:")


def _split(line: Line) -> list[Line]:
    """A run-in heading and the rest of its line."""
    border = line.box.left + (line.box.right - line.box.left) * line.lead / len(line.text)
    left, right = Box(line.box.left, line.box.top, border, line.box.bottom), line.box._replace(left=border)
    heading = replace(line, text=_lead(line), box=left, bold=True, lead=0, is_run_in=True)
    return [heading, replace(line, text=line.text[line.lead :].strip(), box=right, lead=0)]
