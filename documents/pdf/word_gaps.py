"""Where words end, by the space between letters: narrow blanks that a file does not draw, and letters set apart.

A gap is measured between the places that letters take, not between their ink.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from documents.pdf.characters import Character
from documents.pdf.initials import LARGER

_GAP = 0.45  # font sizes between two characters' ink that no word has within it
_BLANK = 0.11  # font sizes between two words; justified text shrinks a blank to 0.16
_USUAL = 0.05  # font sizes between the letters of a word at most, as a row's median
_SET_APART = 0.1  # the same of letters that are set apart at least
_MIN_GAPS, _LIKE, _LETTERS = 5, 0.7, 0.8  # of such a row: gaps; the share of them that are alike, and of letters
_WITHIN = 1.5  # median gaps within a word of such a row
_REACH = 2.0  # font sizes to the next letter of a row
_SAME = 0.1  # of a size, and of it above or below


def words(letters: Iterable[Character]) -> Iterator[list[Character]]:
    """Characters of one word each, in the order of the file."""
    row: list[Character] = []
    for letter in letters:
        if row and not _follows(row[-1], letter):
            yield from _cut(row)
            row = []
        row.append(letter)
    if row:
        yield from _cut(row)


def _apart(one: Character, other: Character) -> bool:
    """Whether two characters that follow each other in the file are drawn as parts of different words."""
    if other.blank or one.style.turn != other.style.turn or one.style.visible != other.style.visible:
        return True
    size = max(one.style.size, other.style.size, other.top - other.bottom)
    if one.style is not other.style:
        small, large = sorted((one.style.size, other.style.size))
        if large >= LARGER * small and abs(one.bottom - other.bottom) > 0.5 * small:  # an initial
            return True
    gap = max(other.left - one.right, one.left - other.right, other.bottom - one.top, one.bottom - other.top)
    return gap > _GAP * size


def _follows(one: Character, other: Character) -> bool:
    """Whether a character is of the word before it, or stands on its line, close behind it."""
    if not _apart(one, other):
        return True
    if one.style.turn != 0 or other.style.turn != 0 or one.style.visible != other.style.visible:
        return False
    size = one.style.size
    level = abs(size - other.style.size) <= _SAME * size and abs(one.room.bottom - other.room.bottom) <= _SAME * size
    return level and -0.5 * size < other.room.left - one.room.right < _REACH * size


def _cut(row: Sequence[Character]) -> Iterator[list[Character]]:
    """The words of characters that follow each other."""
    gaps = [other.room.left - one.room.right for one, other in pairwise(row)]
    size, usual, level = row[0].style.size, median(gaps) if gaps else 0.0, row[0].style.turn == 0
    apart = level and _is_set_apart(row, gaps, usual)
    word = [row[0]]
    for (one, other), gap in zip(pairwise(row), gaps, strict=True):
        if apart:
            begins = other.blank > 1 or gap > _WITHIN * usual + _USUAL * size
        else:
            narrow = level and usual < _USUAL * size and gap > _BLANK * size
            begins = _apart(one, other) or (narrow and _may_part(one.text, other.text))
        if begins:
            yield word
            word = []
        word.append(other)
    yield word


def _is_set_apart(row: Sequence[Character], gaps: Sequence[float], usual: float) -> bool:
    """Whether nearly all letters of a row stand equally far apart."""
    if len(gaps) < _MIN_GAPS or usual < _SET_APART * row[0].style.size:
        return False
    alike = sum(0.7 * usual < gap < _WITHIN * usual for gap in gaps)
    letters = sum(one.text.isalpha() for one in row)
    return alike >= _LIKE * len(gaps) and letters >= _LETTERS * len(row)


def _may_part(one: str, other: str) -> bool:
    """Whether a narrow gap between two characters parts words: not in numbers, codes and formulas."""
    return other.isalpha() and (one.isalpha() or one in ",;:.")
