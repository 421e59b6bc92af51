"""Lines of words inside a table, in fragments that wide gaps divide, and the text of a cell."""

from collections.abc import Iterable, Sequence
from statistics import median

from documents.pdf.clusters import runs
from documents.pdf.hyphenation import joined
from documents.pdf.lines import NO_BLANK_AT_RAISED, baseline
from documents.pdf.page import Box, PageWord
from documents.pdf.word_text import is_raised, superscript

SAME_LINE = 0.5  # of the lower word's height that words on one line share; sub- and superscripts do
NO_BLANK = 0.08  # font sizes; parts of a word that the file draws apart

Line = list[PageWord]  # from the left


def words_in(words: Iterable[PageWord], box: Box) -> list[PageWord]:
    """Words whose middle is in a box."""
    return [word for word in words if box.holds(word.box)]


def words_outside(words: Iterable[PageWord], boxes: Sequence[Box]) -> list[PageWord]:
    """Words whose middle is in none of some boxes."""
    return [word for word in words if not any(box.holds(word.box) for box in boxes)]


def lines_of(words: Iterable[PageWord]) -> list[Line]:
    """Words in lines, from the top."""

    def is_beside(line: Line, word: PageWord) -> bool:
        first, box = line[0].box, word.box
        return first.shared_height(box) >= SAME_LINE * min(first.height, box.height)

    lines = runs(sorted(words, key=lambda word: (word.box.middle, word.box.left)), is_beside)
    return [sorted(line, key=lambda word: word.box.left) for line in lines]


def cell_text(words: Iterable[PageWord]) -> str:
    """The text of a cell, its lines joined by blanks.

    A word that a hyphen divides at a line's end is joined if it goes on in lower case.
    """
    text = ""
    for line in lines_of(words):
        part = ""
        largest = max(line, key=lambda word: word.size)
        for index, word in enumerate(line):
            is_up = word.upright and is_raised(word.size, baseline(largest) - baseline(word), largest.size)
            gap = word.box.left - line[index - 1].box.right if index else 0.0
            apart = gap > (NO_BLANK_AT_RAISED * largest.size if is_up else NO_BLANK * word.size)
            part += (" " if apart else "") + (superscript(word.text, part) if is_up else word.text)
        text = joined(text, part, ()) if text else part
    return text


def font_size(words: Iterable[PageWord]) -> float:
    """The usual font size of some words, points."""
    return median(word.size for word in words)
