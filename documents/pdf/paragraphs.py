"""Lines joined to paragraphs, items of lists and code, across columns and pages."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from documents.left_out import LeftOut
from documents.pdf.footnotes import RAISED
from documents.pdf.hyphenation import joined
from documents.pdf.lines import Line
from documents.pdf.list_items import is_bulleted, item_mark
from documents.pdf.spacing import Body
from documents.records import Paragraph

_MAX_DISTANCE = 1.35  # leadings between lines of a paragraph
_LOOKED_AT = 50  # last lines of a paragraph that say how wide it is
_INDENT = 0.7  # font sizes
_SAME_SIZE = 0.1
_BLANK_LINE = 1.6  # leadings between lines of code with an empty one between them
_STOP = r"[.!?:;…][\"'\u201d\u2019\u00bb)\]]*"
_END_OF_SENTENCE = re.compile(  # with the mark of a footnote, but not the decimals of a number
    rf"(?:{_STOP}(?:[{RAISED}]+| \[\d{{1,3}}\])?|(?<!\d){_STOP}\d{{1,2}})$"
)


@dataclass(slots=True)
class Open:
    """A paragraph that may go on with the next line."""

    lines: list[Line] = field(default_factory=list)
    code: bool = False

    @property
    def last(self) -> Line:
        """Its last line so far."""
        return self.lines[-1]

    @property
    def is_item(self) -> bool:
        """Whether it is an item of a list."""
        return not self.code and item_mark(self.lines[0].text) is not None


def is_code(line: Line, body: Body) -> bool:
    """Whether a line is code by its font."""
    return line.monospaced and not body.monospaced


def goes_on(paragraph: Open, line: Line, body: Body, *, in_list: bool = False) -> bool:
    """Whether a line belongs to the paragraph before it.

    Args:
        paragraph: What stands before it.
        line: The line.
        body: The style of the document's text.
        in_list: Whether the paragraph before or the one before that is an item of a list.
    """
    last = paragraph.last
    if abs(line.size - last.size) > _SAME_SIZE * last.size and len(line.text) > 3 and len(last.text) > 3:
        return False
    elsewhere = (
        last.page != line.page or (last.left, last.right) != (line.left, line.right) or line.baseline <= last.baseline
    )
    if paragraph.code or is_code(line, body):
        return _code_goes_on(paragraph, line, body, elsewhere=elsewhere)
    if _begins_item(paragraph, line, in_list=in_list):
        return False
    if elsewhere:
        return _goes_on_elsewhere(paragraph, line)
    leading = body.leading * max(last.size, line.size) / body.size
    if line.baseline - last.baseline > _MAX_DISTANCE * leading:
        return False
    if line.bold != last.bold and (line.bold or len(paragraph.lines) == 1) and not _full(paragraph, line):
        return False
    return not _indented(paragraph, line) and (_full(paragraph, line) or not _END_OF_SENTENCE.search(last.text))


def _code_goes_on(paragraph: Open, line: Line, body: Body, *, elsewhere: bool) -> bool:
    """Code goes on with code; a full line of prose goes on with a word in a monospaced font."""
    if paragraph.code:
        return is_code(line, body) and (elsewhere or line.baseline - paragraph.last.baseline < 3 * body.leading)
    close = not elsewhere and line.baseline - paragraph.last.baseline <= _MAX_DISTANCE * body.leading
    return close and _full(paragraph, line) and abs(line.box.left - paragraph.last.box.left) < line.size


def _begins_item(paragraph: Open, line: Line, *, in_list: bool) -> bool:
    """Whether a line begins an item of a list; a number may as well stand there by chance."""
    ends = _END_OF_SENTENCE.search(paragraph.last.text) is not None
    return is_bulleted(line.text) or (item_mark(line.text) is not None and (in_list or paragraph.is_item or ends))


def _goes_on_elsewhere(paragraph: Open, line: Line) -> bool:
    """Whether a paragraph goes on at the top of the next column or page."""
    last = paragraph.last
    if _END_OF_SENTENCE.search(last.text) or line.bold != last.bold:
        return False
    if last.text.endswith(("-", "\xad", ",")) or line.text[0].islower():
        return True
    hangs = paragraph.is_item or len(paragraph.lines) == 1
    return _full(paragraph, line) and (hangs or line.box.left < line.left + _INDENT * line.size)


def _indented(paragraph: Open, line: Line) -> bool:
    """Whether a line begins a paragraph by its indent; or ends a hanging one by having none."""
    shift = line.box.left - paragraph.last.box.left
    limit = _INDENT * line.size
    if len(paragraph.lines) > 1:
        return abs(shift) > limit and not _centered(paragraph, line)
    return shift > limit and not paragraph.is_item and not _full(paragraph, line)  # the second hangs below a full line


def _centered(paragraph: Open, line: Line) -> bool:
    """Whether all lines are centred on one another."""
    middles = [part.box.left + part.box.right for part in (*paragraph.lines[-_LOOKED_AT:], line)]
    return max(middles) - min(middles) < line.size


def _full(paragraph: Open, line: Line) -> bool:
    """Whether the last line had no room for the first word of the next."""
    last = paragraph.last
    word = len(line.text.split(maxsplit=1)[0]) if line.text.split() else 0
    width = (line.box.right - line.box.left) / max(1, len(line.text)) * word
    edge = max(part.box.right for part in paragraph.lines[-_LOOKED_AT:]) if len(paragraph.lines) > 1 else last.right
    return last.box.right + width + 0.25 * last.size > min(edge, last.right) - 0.1 * last.size


def paragraph_of(paragraph: Open, words: Container[str], left_out: LeftOut) -> Paragraph:
    """The text of a paragraph: prose as one line, a list's item with its mark, code with its breaks and indents.

    Args:
        paragraph: Its lines.
        words: Of the document, see `hyphenation.vocabulary`.
        left_out: Gets the hyphens that are left out.
    """
    page = paragraph.lines[0].page
    if paragraph.code:
        return Paragraph(_code(paragraph.lines), page, code=True)
    text = ""
    for line in paragraph.lines:
        part = " ".join(line.text.split())
        before, text = text, joined(text, part, words) if text else part
        if len(text) < len(before) + len(part):
            left_out.text("hyphens at ends of lines left out", f"{before.split()[-1]} {part.split(maxsplit=1)[0]}")
    text = text.rstrip("\xad")
    mark = item_mark(text)
    return Paragraph(f"{mark[0]} {mark[1]}" if mark else text, page)


def _code(lines: Sequence[Line]) -> str:
    """Lines of code, indented as they are drawn."""
    cell = max(max(line.cell for line in lines), 1.0)
    left = {page: min(line.box.left for line in lines if line.page == page) for page in {line.page for line in lines}}
    gaps = [after.baseline - before.baseline for before, after in pairwise(lines)]
    usual = min((gap for gap in gaps if gap > 0), default=lines[0].size)
    text = ""
    for line, gap in zip(lines, [0.0, *gaps], strict=True):
        text += "\n\n" if gap > _BLANK_LINE * usual else "\n"
        text += " " * round((line.box.left - left[line.page]) / cell) + line.text
    return text[1:]
