"""A page of a PDF file as words, by pdfium: characters joined to words, doubled and invisible text left out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from harness.documents.pdf.characters import Character, characters, origin
from harness.documents.pdf.page import Box, Page, Word
from harness.documents.pdf.placement import Matrix, placement, visible_area
from harness.documents.pdf.word_text import word_text

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

ASCENT, DESCENT = 0.8, 0.2  # of a word's box above and below its baseline, in font sizes: the same for all fonts
_GAP = 0.45  # font sizes between two characters' ink that no word has within it
_LEAST_SIZE = 2.0  # points; a font said to be smaller is a Type 3 font whose size is hidden in its own matrix
_SHADOW = 0.15  # font sizes by which a word drawn again is displaced at most
_CAPITAL = 0.7  # height of capitals and ascenders, in font sizes


def read_page(page: "PdfPage", number: int) -> Page:
    """Words of a page, in the order of the file.

    Invisible text is left out if the page has visible text; else it is the text of a scanned page, and stays.

    Args:
        page: An open page.
        number: Its number in the file, from 1.
    """
    placed = placement(page)
    left, bottom, right, top = visible_area(page)
    area = placed.box(left, bottom, right, top)
    text = page.get_textpage()
    try:
        found = [_word(text, run, placed) for run in _runs(characters(text, placed))]
    finally:
        text.close()
    words = [(word, shown) for word, shown in found if word.text and _inside(word.box, area)]
    seen = [word for word, shown in words if shown] or [word for word, _ in words]
    return Page(number, area.right, area.bottom, tuple(_without_doubles(_real_sizes(seen))))


def _runs(letters: Iterable[Character | None]) -> Iterator[list[Character]]:
    """Characters of one word each: between blanks, drawn one after the other on one line."""
    run: list[Character] = []
    for letter in letters:
        if run and (letter is None or _apart(run[-1], letter)):
            yield run
            run = []
        if letter is not None:
            run.append(letter)
    if run:
        yield run


def _apart(one: Character, other: Character) -> bool:
    """Whether two characters that follow each other in the file belong to different words."""
    if one.style.upright != other.style.upright or one.style.visible != other.style.visible:
        return True
    size = max(one.style.size, other.style.size, other.top - other.bottom)
    gap = max(other.left - one.right, one.left - other.right, other.bottom - one.top, one.bottom - other.top)
    return gap > _GAP * size


def _word(text: "PdfTextPage", run: list[Character], placed: Matrix) -> tuple[Word, bool]:
    """A word of its characters, and whether it is visible."""
    styles = [letter.style for letter in run]
    style = max(dict.fromkeys(styles), key=styles.count)
    ink = placed.box(
        min(letter.left for letter in run),
        min(letter.bottom for letter in run),
        max(letter.right for letter in run),
        max(letter.top for letter in run),
    )
    box = ink
    if style.upright and style.size >= _LEAST_SIZE:
        first = next(letter for letter in run if letter.style == style)
        baseline = placed.point(*origin(text, first.position))[1]
        box = Box(ink.left, baseline - ASCENT * style.size, ink.right, baseline + DESCENT * style.size)
    letters = [(letter.text, letter.left, letter.right) for letter in run]
    word = Word(word_text(letters), box, style.size, style.font, style.bold, style.italic, style.upright, style.color)
    return word, style.visible


def _inside(box: Box, area: Box) -> bool:
    """Whether the middle of a box is shown."""
    x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    return area.left <= x <= area.right and area.top <= y <= area.bottom


def _real_sizes(words: Sequence[Word]) -> list[Word]:
    """Words of fonts whose size is hidden (see `_LEAST_SIZE`) with a size estimated from the height of their ink."""
    heights = defaultdict(list)
    for word in words:
        if word.size < _LEAST_SIZE:
            heights[word.font, word.size].append(word.box.bottom - word.box.top)
    sizes = {font: median(values) / _CAPITAL for font, values in heights.items()}
    return [replace(word, size=sizes[word.font, word.size]) if word.size < _LEAST_SIZE else word for word in words]


def _without_doubles(words: Sequence[Word]) -> Iterator[Word]:
    """Words drawn twice, slightly displaced, to look bold or to throw a shadow: one of them, bold."""
    drawn = defaultdict(list)
    for word in words:
        drawn[word.text].append(word)
    bold, left_out = set(), set()
    for same in drawn.values():
        kept: list[Word] = []
        for word in sorted(same, key=lambda word: word.box):
            if twin := _twin(word, kept):
                bold.add(id(twin))
                left_out.add(id(word))
            else:
                kept.append(word)
    return (replace(word, bold=True) if id(word) in bold else word for word in words if id(word) not in left_out)


def _twin(word: Word, others: Sequence[Word]) -> Word | None:
    """One of the words, sorted by their left edge, that stands nearly where a word does that is not left of them."""
    most = _SHADOW * word.size
    for other in reversed(others):
        if other.box.left < word.box.left - most:
            return None
        if all(abs(a - b) <= most for a, b in zip(word.box, other.box, strict=True)):
            return other
    return None
