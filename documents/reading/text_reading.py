"""Plain text files as documents: every character stays as it is typed, nothing in them is markup."""

import re
from itertools import groupby
from textwrap import dedent

from documents.left_out import LeftOut
from documents.normal_form import LIST_ITEM, normalized, one_line, title_of
from documents.pdf.list_items import is_bulleted
from documents.reading.outline import titled
from documents.records import Block, Document, Heading, Paragraph

_UNDERLINE = re.compile(r"([=\-~^*#+\"'.:_`])\1{2,}")
_MAX_HEADING = 100  # characters
_COLUMNS = re.compile(r"\S(?<![.!?:;]) {2,}\S|\S[.!?:;] {3,}\S|\S[ ]*\t")  # of a table or code: more than a blank


def parse_text(text: str, name: str, left_out: LeftOut) -> Document:
    """A document from plain text, in normal form.

    Lines between empty ones are a paragraph; they stay lines where their blanks count: columns, indents, bullets. An
    underlined line on its own is a heading. A form feed ends a paragraph.

    Args:
        text: The file's text.
        name: The document's name.
        left_out: What was left out already.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n").split("\n")
    groups = [list(group) for is_text, group in groupby(lines, lambda line: bool(line.strip())) if is_text]
    signs: list[str] = []  # that underline headings, from the first level
    found: list[Block] = []
    for group in groups:
        title = one_line(group[0])
        if len(group) > 1 and len(title) <= _MAX_HEADING and _underlines(group[1].strip(), title):
            sign = group[1].strip()[0]
            signs += [] if sign in signs else [sign]
            found.append(Heading(title, signs.index(sign) + 1))
            group = group[2:]
        if group:
            found.append(_paragraph(group))
    named, blocks = titled(found)
    return normalized(Document(name, named or title_of(name), tuple(blocks), left_out=left_out.lines))


def _underlines(line: str, title: str) -> bool:
    """Whether a line underlines a title: it has about its length."""
    return _UNDERLINE.fullmatch(line) is not None and abs(len(line) - len(title)) <= 2 and title[0].isalnum()


def _paragraph(lines: list[str]) -> Paragraph:
    inner = dedent("\n".join(lines))
    if LIST_ITEM.fullmatch(inner.split("\n", 1)[0]):
        return Paragraph(inner)
    counts = any(_COLUMNS.search(line) or is_bulleted(line.strip()) for line in lines)
    counts = counts or any(line[:1] in " \t" for line in inner.split("\n")[1:])
    return Paragraph(inner, code=counts and len(lines) > 1)
