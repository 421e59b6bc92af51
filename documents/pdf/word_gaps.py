"""Where words end, by the space between letters: narrow blanks that a file does not draw, and letters set apart.

A gap is measured between the places that letters take, not between their ink.
"""

from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pypdfium2 import PdfMatrix, PdfTextPage, raw

from documents.pdf.characters import Character
from documents.pdf.page import Box
from documents.pdf.placement import placed_box

_BLANK = 0.11  # font sizes between two words; justified text shrinks a blank to 0.16
_USUAL = 0.05  # font sizes between the letters of a word at most, as a row's median
_SET_APART = 0.1  # the same of letters that are set apart at least
_MIN_GAPS, _LIKE, _LETTERS = 5, 0.7, 0.8  # of such a row: gaps; the share of them that are alike, and of letters
_WITHIN = 1.5  # median gaps within a word of such a row
_REACH = 2.0  # font sizes to the next letter of a row
_SAME = 0.1  # of a size, and of it above or below


class _Placed(NamedTuple):
    letter: Character
    box: Box  # that the letter takes, as it is shown
    begins: bool  # whether pdfium has a blank before it, or the file draws it elsewhere


def by_gaps(text: PdfTextPage, runs: Iterable[list[Character]], placed: PdfMatrix) -> Iterator[list[Character]]:
    """Characters of one word each.

    Args:
        text: The page's text.
        runs: Characters between blanks, as the file or pdfium has them.
        placed: See `characters`.
    """
    row: list[_Placed] = []
    for run in runs:
        for at, letter in enumerate(run):
            now = _Placed(letter, _room(text, letter, placed), at == 0)
            if row and not _follows(row[-1], now):
                yield from _words(text, row)
                row = []
            row.append(now)
    yield from _words(text, row)


def _room(text: PdfTextPage, letter: Character, placed: PdfMatrix) -> Box:
    room = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text, letter.position, byref(room))
    return placed_box(placed, room.left, room.bottom, room.right, room.top)


def _follows(one: _Placed, other: _Placed) -> bool:
    """Whether a letter stands on the line of the one before, close behind it."""
    style, next_style, size = one.letter.style, other.letter.style, one.letter.style.size
    if style.turn != 0 or next_style.turn != 0 or style.visible != next_style.visible:
        return not other.begins  # a run stays as it is
    level = abs(size - next_style.size) <= _SAME * size and abs(one.box.bottom - other.box.bottom) <= _SAME * size
    near = -0.5 * size < other.box.left - one.box.right < _REACH * size
    return not other.begins or (level and near)


def _words(text: PdfTextPage, row: Sequence[_Placed]) -> Iterator[list[Character]]:
    """The words of letters that follow each other."""
    gaps = [other.box.left - one.box.right for one, other in pairwise(row)]
    if not gaps or row[0].letter.style.turn != 0:
        yield from [[one.letter for one in row]] if row else []
        return
    size, usual = row[0].letter.style.size, median(gaps)
    apart = _is_set_apart(row, gaps, usual)
    word = [row[0].letter]
    for (one, other), gap in zip(pairwise(row), gaps, strict=True):
        if apart:
            begins = gap > _WITHIN * usual + _USUAL * size or (other.begins and _has_blank(text, one, other))
        else:
            narrow = usual < _USUAL * size and gap > _BLANK * size
            begins = other.begins or (narrow and _may_part(one.letter.text, other.letter.text))
        if begins:
            yield word
            word = []
        word.append(other.letter)
    yield word


def _is_set_apart(row: Sequence[_Placed], gaps: Sequence[float], usual: float) -> bool:
    """Whether nearly all letters of a row stand equally far apart."""
    if len(gaps) < _MIN_GAPS or usual < _SET_APART * row[0].letter.style.size:
        return False
    alike = sum(0.7 * usual < gap < _WITHIN * usual for gap in gaps)
    letters = sum(one.letter.text.isalpha() for one in row)
    return alike >= _LIKE * len(gaps) and letters >= _LETTERS * len(row)


def _has_blank(text: PdfTextPage, one: _Placed, other: _Placed) -> bool:
    """Whether the file itself has a blank between two letters."""
    between = range(one.letter.position + 1, other.letter.position)
    return any(raw.FPDFText_IsGenerated(text, at) == 0 for at in between)


def _may_part(one: str, other: str) -> bool:
    """Whether a narrow gap between two characters parts words: not in numbers, codes and formulas."""
    return other.isalpha() and (one.isalpha() or one in ",;:.")
