"""A page of a PDF file as words, by pdfium: characters joined to words, doubled and invisible text left out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from documents.pdf.characters import Character, characters, origin
from documents.pdf.drawn_objects import drawn_objects
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.placement import PlacementMatrix, placement, visible_area
from documents.pdf.word_text import word_text

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

ASCENT, DESCENT = 0.8, 0.2  # of a word's box above and below its baseline, in font sizes: the same for all fonts
_GAP = 0.45  # font sizes between two characters' ink that no word has within it
_MIN_SIZE = 2.0  # points; a font said to be smaller is a Type 3 font whose size is hidden in its own matrix
_SHADOW = 0.15  # font sizes by which a word drawn again is displaced at most
_AROUND = (0, -1, 1)  # cells of that size
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
    shown = [item for item in found if item.word.text and _inside(item.word.box, area)]
    seen = [item for item in shown if item.visible] or shown
    return Page(number, area.right, area.bottom, tuple(_without_doubles(_sized(seen))), *drawn_objects(page))


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


@dataclass(slots=True)
class _Found:
    """A word before it is known whether its font's size is what it seems to be."""

    word: PageWord
    baseline: float  # from the page's top
    visible: bool


def _word(text: "PdfTextPage", run: list[Character], placed: PlacementMatrix) -> _Found:
    """A word of its characters; its box is its ink."""
    styles = [letter.style for letter in run]
    style = max(dict.fromkeys(styles), key=styles.count)
    ink = placed.box(
        min(letter.left for letter in run),
        min(letter.bottom for letter in run),
        max(letter.right for letter in run),
        max(letter.top for letter in run),
    )
    first = next(letter for letter in run if letter.style == style)
    letters = [(letter.text, letter.left, letter.right) for letter in run]
    word = PageWord(
        word_text(letters), ink, style.size, style.font, style.bold, style.italic, style.upright, style.color
    )
    return _Found(word, placed.point(*origin(text, first.position))[1], style.visible)


def _inside(box: Box, area: Box) -> bool:
    """Whether the middle of a box is shown."""
    x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    return area.left <= x <= area.right and area.top <= y <= area.bottom


def _sized(found: Sequence[_Found]) -> list[PageWord]:
    """Words with boxes by their baselines and sizes.

    Hidden sizes (see `_MIN_SIZE`) are estimated from the height of the ink.
    """
    heights = defaultdict(list)
    for item in found:
        if item.word.size < _MIN_SIZE:
            heights[item.word.font, item.word.size].append(item.word.box.bottom - item.word.box.top)
    sizes = {font: median(values) / _CAPITAL for font, values in heights.items()}
    words = []
    for item in found:
        word, ink = item.word, item.word.box
        size = sizes.get((word.font, word.size), word.size)
        above_below = (item.baseline - ASCENT * size, item.baseline + DESCENT * size)
        box = Box(ink.left, above_below[0], ink.right, above_below[1]) if word.upright else ink
        words.append(replace(word, size=size, box=box))
    return words


def _without_doubles(words: Sequence[PageWord]) -> Iterator[PageWord]:
    """Words drawn twice, slightly displaced, to look bold or to throw a shadow: one of them, bold."""
    drawn: dict[tuple[str, int, int, int], list[PageWord]] = defaultdict(list)  # by text, size and place
    bold, left_out = set(), set()
    for word in words:
        size = max(1, round(word.size))
        x, y = int(word.box.left // (_SHADOW * size)), int(word.box.top // (_SHADOW * size))
        near = (other for dx in _AROUND for dy in _AROUND for other in drawn.get((word.text, size, x + dx, y + dy), ()))
        twin = next((other for other in near if _displaced(other, word)), None)
        if twin is None:
            drawn[word.text, size, x, y].append(word)
        else:
            bold.add(id(twin))
            left_out.add(id(word))
    return (replace(word, bold=True) if id(word) in bold else word for word in words if id(word) not in left_out)


def _displaced(one: PageWord, other: PageWord) -> bool:
    """Whether two equal words stand nearly in the same place."""
    return all(abs(a - b) <= _SHADOW * one.size for a, b in zip(one.box, other.box, strict=True))
