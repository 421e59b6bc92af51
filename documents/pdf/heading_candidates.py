"""Groups of lines in one style that could be headings, by their shape.

Short, set apart, no sentence, no caption, no item of a list.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from documents.pdf.hyphenation import joined
from documents.pdf.lines import Line, Placed
from documents.pdf.list_items import is_bulleted
from documents.pdf.numbering import Number, number_of
from documents.pdf.spacing import Body, space_above

_MAX_LINES, _MAX_CHARACTERS = 4, 220
_LINE_DISTANCE = 1.75  # font sizes between baselines of a heading's lines
_LARGER = 1.06  # body sizes from which on a font alone shows a heading
_SET_APART, _FAR_APART = 1.15, 1.3  # leadings above a heading in the body's size, and above one that is not bold either
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|listing|algorithm|example|scheme|plate|equation|exhibit|picture|theorem|lemma|corollary|proposition|definition|conjecture|bild|abb(?:ildung|\.)?|tabelle|figura|tabla)"
    r"\s*(?:[A-Z]?\d[\w.-]*|[IVX]+)(?:\s*[.:|\u2013\u2014-]|\s|$)",
    re.IGNORECASE,
)
_KEYWORDS = re.compile(r"(?:key ?words|index terms|doi|pacs|jel)\b[^:.]{0,20}:", re.IGNORECASE)
_LABEL = re.compile(r"[^\W\d]+: \S+$")  # of a value
_ADMONITION = re.compile(
    r"(?:note|notes|warning|caution|tip|important|danger|attention|hinweis|achtung|remark)\W*", re.IGNORECASE
)
_CHAPTER = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie)(?:\s+\w{1,9})?[.:]?", re.IGNORECASE
)
_VALUE = re.compile(r"\w{1,9}[.:]?")

Style = tuple[float, bool, bool, bool]  # size, bold, italic, capitals
RUN_IN: Style = (0.0, True, False, False)  # less prominent than all others


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that follow each other in one style."""

    first: int  # among the document's items
    last: int
    lines: tuple[Line, ...]
    text: str
    number: Number | None
    above: float  # leadings of the body to the line above, see `space_above`
    below: float

    @property
    def line(self) -> Line:
        """The line whose style the group has."""
        return self.lines[-1]

    @property
    def style(self) -> Style:
        """The common style of headings of one level."""
        letters = self.text[self.number.length :] if self.number else self.text
        if self.line.is_run_in:
            return RUN_IN
        return (round(self.line.size, 1), self.line.bold, self.line.italic, _capitals(letters))


def groups(items: Sequence[Line | Placed], body: Body) -> list[Group]:
    """Groups of a document in reading order.  "Chapter 4" above a chapter's title belongs to it.

    Text beside the page's is in none: a stamp or a watermark is no title and no heading.
    """
    found: list[tuple[int, list[Line]]] = []  # lines that follow each other, and the place of the first one
    for at, item in enumerate(items):
        if not isinstance(item, Line) or item.is_aside:
            continue
        first, lines = found[-1] if found else (at, [])
        if lines and first + len(lines) == at and (_continues(lines, item) or _titled(lines, item)):
            lines.append(item)
        else:
            found.append((at, [item]))
    result = []
    for first, lines in found:
        last = first + len(lines) - 1
        text = join_lines([line.text for line in lines])
        above, below = space_above(items, first, body), space_above(items, last + 1, body)
        result.append(Group(first, last, tuple(lines), text, number_of(text), above, below))
    return result


def join_lines(texts: Sequence[str]) -> str:
    """Lines of a heading as one; a word that is cut is joined, as headings seldom break at a hyphen of their own."""
    parts = [" ".join(text.split()) for text in texts]
    return reduce(lambda text, part: joined(text, part, ()), parts).rstrip("\xad")


def looks_like_heading(group: Group, body: Body, exact: bool = False) -> bool:
    """Whether a group has the shape and the style of a heading.

    Args:
        group: Lines in one style.
        body: The style of the document's text.
        exact: Whether it looks exactly like headings that are known: then it may begin with a small letter, or be a
            single "Note".
    """
    text, number, line = group.text, group.number, group.line
    rest = text[number.length :] if number else text
    letters = sum(char.isalpha() for char in rest)
    if letters < 2 or letters < 0.4 * len(rest.replace(" ", "")):
        return False
    if len(text) > _MAX_CHARACTERS or len(group.lines) > _MAX_LINES:
        return False
    if _CAPTION.match(text) or (_ADMONITION.fullmatch(rest) and not exact) or _KEYWORDS.match(rest):
        return False
    if any(part.pieces > (2 if number and at == 0 else 1) for at, part in enumerate(group.lines)):
        return False
    if (is_bulleted(text) and not number) or (line.monospaced and not body.monospaced and line.size < 1.15 * body.size):
        return False
    larger = line.size > _LARGER * body.size
    may_end_sentence = larger or (number is not None and number.sure and (line.bold or number.depth > 1))
    if rest[-1] in (",;:" if may_end_sentence else ",;:.") or (rest[0].islower() and rest[-1] == "."):
        return False
    if larger:
        return rest[0].isalnum() or not rest[0].isascii() or rest[0] in "\"'(\u201c"
    if not number and ((rest[0].islower() and not exact) or _LABEL.match(rest)):
        return False
    if line.bold and not body.bold and line.size > 0.85 * body.size:
        return group.above >= _SET_APART and len(group.lines) <= 3
    if group.above < _FAR_APART or len(group.lines) > 2:
        return False
    if number is None and line.italic and not body.italic:
        return rest[0].isalnum() and line.size > 0.95 * body.size
    different = abs(line.size - body.size) > 0.04 * body.size or line.italic != body.italic or _capitals(rest)
    sure = number is not None and number.sure and number.kind != "small letter"
    return sure and different and group.below >= _SET_APART and line.size > 0.8 * body.size


def _continues(lines: Sequence[Line], line: Line) -> bool:
    """Whether a line belongs to the group of the lines before."""
    before = lines[-1]
    if (before.page, before.left, before.right) != (line.page, line.left, line.right):
        return False
    if not 0 < line.baseline - before.baseline <= _LINE_DISTANCE * max(before.size, line.size):
        return False
    same_style = abs(before.size - line.size) <= 0.02 * line.size and before.bold == line.bold
    ends_italics = not line.bold and not line.italic and all(other.italic for other in lines)
    if not same_style or ends_italics or before.color != line.color or before.is_run_in or line.is_run_in:
        return False
    number = number_of(line.text)
    return not is_bulleted(line.text) and (number is None or not number.sure or not line.bold)


def is_chapter(text: str) -> bool:
    """Whether a text is no more than the number of a chapter, part or appendix, or the word for it."""
    return _CHAPTER.fullmatch(text.strip()) is not None


def _titled(lines: Sequence[Line], line: Line) -> bool:
    """Whether lines are the number of the chapter whose title a line is, or "CHAPTER" above its number."""
    before = lines[-1]
    if not is_chapter(lines[0].text) or before.page != line.page or line.monospaced or len(lines) > 2:
        return False
    if len(lines) == 2 and (" " in lines[0].text.strip() or not _VALUE.fullmatch(before.text.strip())):
        return False
    return line.size >= 0.95 * before.size and 0 < line.baseline - before.baseline <= 5 * line.size


def _capitals(text: str) -> bool:
    """Whether a text is set in capitals."""
    return sum(char.isalpha() for char in text) > 3 and text.upper() == text and text.lower() != text
