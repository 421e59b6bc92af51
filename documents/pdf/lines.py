"""Words of a page joined to lines, in reading order."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from statistics import median
from typing import Literal, TypeVar

from documents.pdf.clusters import around, fragments, runs
from documents.pdf.fonts import is_monospaced
from documents.pdf.page import Box, PageWord, Rule
from documents.pdf.word_text import is_raised, superscript
from documents.records import Image, Table

_BASELINE = 0.8  # of a word's height below its top, see read_page.ASCENT
_SAME_BASELINE = 0.12  # font sizes
_FRAGMENT_GAP = 0.7  # font sizes between words of one fragment; wider gaps may be gutters
_SCRIPT_SIZE = 0.86  # of the text that a sub- or superscript belongs to
_SCRIPT_GAP = 0.3  # font sizes between them
_MIN_LETTERS = 3  # of a word that is no symbol
_MAX_PLAIN = 0.15  # of a bold line's characters
_NO_BLANK = 0.05  # font sizes between parts of one word that the file draws apart
NO_BLANK_AT_RAISED = 0.25  # the same beside raised text
_OTHER_SIZE = 0.35  # of a size, between turned texts: a stamp and a watermark
_UNDERSCORE_WIDTH = 12.0  # points
_MONOSPACED_SHARE = 0.85  # of a line's characters


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.  Its font, size and colour are those of most of its characters."""

    text: str  # in a monospaced line blanks stand as they are drawn
    box: Box
    page: int
    left: float  # edges of its column
    right: float
    size: float = 10.0
    font: str = ""
    bold: bool = False  # all of it, but for symbols and code
    italic: bool = False
    monospaced: bool = False
    color: tuple[int, int, int] = (0, 0, 0)
    cell: float = 0.0  # median width of a character, points
    pieces: int = 1  # between wide gaps
    lead: int = 0  # characters at its beginning that are bold, or have a number and are italic, if the rest is not
    is_run_in: bool = False  # whether it is a heading that text followed on the same line
    upright: bool = True  # whether it runs from left to right
    beside: Literal["", "running", "margin"] = (
        ""  # of a sentence that repeats on other pages, or of a note in the margin
    )

    @property
    def is_aside(self) -> bool:
        """Whether it stands beside the text: it is no part of its paragraphs and no heading."""
        return self.beside != "" or not self.upright

    @property
    def baseline(self) -> float:
        """Distance from the page's top."""
        return self.box.bottom - (1 - _BASELINE) * self.size


@dataclass(frozen=True, slots=True)
class Placed:
    """A table or an image on a page."""

    content: Table | Image
    box: Box
    page: int


Written = TypeVar("Written", PageWord, Line)


def baseline(word: PageWord | Line) -> float:
    """A word's baseline, from the page's top."""
    return word.box.top + _BASELINE * (word.box.bottom - word.box.top)


def _pieces(words: Iterable[PageWord]) -> list[list[PageWord]]:
    """Words that follow each other on a baseline with no wide gap, with their sub- and superscripts.

    From left to right.

    The order of `words` does not count, but for text that does not run from left to right: it stays in the order of the
    file.
    """
    rows = baseline_rows(word for word in words if word.upright)
    from_left = (sorted(row, key=lambda word: (word.box, word.text)) for row in rows)
    return _with_scripts([part for row in from_left for part in fragments(row, _FRAGMENT_GAP)])


def baseline_rows(words: Iterable[Written]) -> list[list[Written]]:
    """Words or pieces of lines with one baseline each, from the top; the order of `words` does not count."""

    def is_level(row: list[Written], word: Written) -> bool:
        return baseline(word) - baseline(row[-1]) <= _SAME_BASELINE * min(word.size, row[-1].size)

    return runs(sorted(words, key=lambda word: (baseline(word), word.box, word.text)), is_level)


def _with_scripts(parts: list[list[PageWord]]) -> list[list[PageWord]]:
    """Fragments, with those that are sub- and superscripts of a word inside the fragment of that word."""
    boxes = [around([word.box for word in part]) for part in parts]
    tops = sorted((box.top, at) for at, box in enumerate(boxes))
    home: dict[int, int] = {}
    for at, small in enumerate(boxes):
        size = max(word.size for word in parts[at])
        first, end = bisect_left(tops, (small.bottom - 3 * size, -1)), bisect_left(tops, (small.bottom, -1))
        for host in (host for _, host in tops[first:end] if size < _SCRIPT_SIZE * parts[host][0].size):
            box, gap = boxes[host], _SCRIPT_GAP * parts[host][0].size
            beside = box.left - gap <= small.right and small.left <= box.right + gap
            if beside and box.shared_height(small) > 0.3 * size:
                home[at] = host
                break
    for at, host in home.items():
        while host in home:  # a script of a script
            host = home[host]
        parts[host] = parts[host] + parts[at]
    kept = (part for at, part in enumerate(parts) if at not in home)
    return [sorted(part, key=lambda word: (word.box.left, word.box, word.text)) for part in kept]


def page_lines(words: Sequence[PageWord], page: int, rules: Iterable[Rule] = ()) -> list[Line]:
    """Pieces of lines of a page, by its words and rules: words that follow each other without a wide gap.

    `reading.read` joins them in reading order.
    """
    underscores = sorted(rule.box for rule in rules if 0 < rule.box.right - rule.box.left <= _UNDERSCORE_WIDTH)
    found = [_line(part, page, underscores) for part in _pieces(words)]
    others = (word for word in words if not word.upright)
    turned = runs(others, lambda run, word: abs(word.size - run[-1].size) <= _OTHER_SIZE * word.size)
    return [*found, *(_line(part, page, ()) for part in turned)]


def _monospaced(words: Iterable[PageWord]) -> bool:
    """Whether nearly all characters are equally wide."""
    equally_wide = sum(len(word.text) for word in words if is_monospaced(word.font))
    return equally_wide >= _MONOSPACED_SHARE * sum(len(word.text) for word in words)


def _line(words: Sequence[PageWord], page: int, underscores: Sequence[Box]) -> Line:
    """A line of words in the order in which they are read."""
    style = Counter[tuple[float, str, bool, bool, tuple[int, int, int]]]()
    for word in [word for word in words if len(word.text) > 1] or words:
        style[round(word.size, 1), word.font, word.bold, word.italic, word.color] += len(word.text)
    (size, font, bold, italic, color), _ = style.most_common(1)[0]
    cell = median((word.box.right - word.box.left) / len(word.text) for word in words)
    monospaced = _monospaced(words)
    largest = max(words, key=lambda word: (word.text[0].isalnum(), word.size))
    base = baseline(largest)
    up = [word.upright and is_raised(word.size, base - baseline(word), largest.size) for word in words]
    text = superscript(words[0].text) if up[0] else words[0].text
    for (one, was_up), (other, is_up) in pairwise(zip(words, up, strict=True)):
        gap = other.box.left - one.box.right
        if _underscore(one, other, underscores):
            text += "_"
        elif monospaced and cell > 0 and one.upright:
            text += " " * max(1, round(gap / cell))
        elif (
            gap > (NO_BLANK_AT_RAISED if was_up or is_up else _NO_BLANK) * max(one.size, other.size)
            or one.size == other.size
            or not one.upright
        ):
            text += " "
        text += superscript(other.text, text) if is_up else other.text
    box = around([word.box for word in words if word.size >= 0.6 * size])
    plain = sum(len(word.text) for word in words if _is_plain(word))
    bold = bold and plain <= _MAX_PLAIN * sum(len(word.text) for word in words)
    lead = 0 if bold or monospaced else _lead(words)
    return Line(
        text, box, page, box.left, box.right, size, font, bold, italic, monospaced, color, cell,
        lead=lead, upright=words[0].upright,
    )  # fmt: skip


def _lead(words: Sequence[PageWord]) -> int:
    """How many characters of a line its first words have that are bold, or italic, unlike the last one."""
    for is_led in (lambda word: word.bold, lambda word: word.italic):
        led = list(takewhile(is_led, words))
        if led and not is_led(words[-1]):
            return len(" ".join(word.text for word in led))
    return 0


def _is_plain(word: PageWord) -> bool:
    """Whether a word is neither bold nor code nor of a formula."""
    letters = sum(char.isalpha() for char in word.text)
    return not word.bold and not is_monospaced(word.font) and letters >= _MIN_LETTERS


def _underscore(one: PageWord, other: PageWord, rules: Sequence[Box]) -> bool:
    """Whether an underscore is drawn as a rule between two words, as TeX does outside of code."""
    slack = 0.15 * one.size
    gap_rules = rules[bisect_left(rules, (one.box.right - slack,)) : bisect_left(rules, (other.box.left,))]
    return other.box.left - one.box.right < 6 * slack and any(
        -slack <= rule.top - baseline(one) <= 2.5 * slack
        and slack < rule.right - rule.left
        and rule.right <= other.box.left + slack
        for rule in gap_rules
    )
