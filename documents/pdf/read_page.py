"""A page of a PDF file as words, by pdfium: characters joined to words, doubled and invisible text left out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median, mode

from pypdfium2 import PdfMatrix, PdfPage, PdfTextPage

from documents.left_out import LeftOut
from documents.pdf.characters import Character, characters, origin
from documents.pdf.drawn_objects import drawn_objects
from documents.pdf.initials import join_initials
from documents.pdf.page import Box, Page, PageWord
from documents.pdf.placement import placed_box, placement
from documents.pdf.word_gaps import words
from documents.pdf.word_text import is_raised, superscript, word_text

ASCENT, DESCENT = 0.8, 0.2  # of a word's box above and below its baseline, in font sizes: the same for all fonts
_MIN_SIZE = 2.0  # points; a font said to be smaller is a Type 3 font whose size is hidden in its own matrix
_SHADOW = 0.15  # font sizes by which a word drawn again is displaced at most
_MOST_OUTSIDE = 1 / 3  # of a page's letters; where more are outside of a page that is not cropped, its box is wrong
_TURNED = 0.8  # of a page's letters that run in one direction for the page to be turned
_AROUND = (0, -1, 1)  # cells of that size
_CAPITAL = 0.7  # height of capitals and ascenders, in font sizes


def read_page(page: PdfPage, number: int, left_out: LeftOut) -> Page:
    """Words of a page, in the order of the file.

    Invisible text is left out if the page has visible text; else it is the text of a scanned page, and stays.

    A page nearly all of whose text is turned is turned back, and stays so while it is open.

    Args:
        page: An open page.
        number: Its number in the file, from 1.
        left_out: Gets what is left out.
    """
    found = _found(page)
    area, outside = _outside(page, found)
    if len(outside) > _MOST_OUTSIDE * len("".join(item.word.text for item in found)) and not _is_cropped(page):
        left_out.text("text outside of the page read all the same", outside)
        _widen(page)
        found = _found(page)
    if turn := _common_turn(found):
        page.set_rotation((page.get_rotation() + turn) % 360)
        found = _found(page)
    area, outside = _outside(page, found)
    left_out.text("text outside of the page left out", outside)
    shown = [item for item in found if item.word.text and area.holds(item.word.box)]
    seen = [item for item in shown if item.visible] or shown
    if len(seen) < len(shown):
        left_out.text("invisible text left out", " ".join(item.word.text for item in shown if not item.visible))
    words, doubles = _without_doubles(_sized(seen))
    left_out.text("text drawn twice left out once", " ".join(doubles))
    return Page(number, area.right, area.bottom, tuple(join_initials(words)), *drawn_objects(page))


def _found(page: PdfPage) -> list["_Found"]:
    """Words of a page as it is shown."""
    placed = placement(page)
    with closing(page.get_textpage()) as text:
        return [_word(text, run, placed) for run in words(characters(text, placed))]


def _outside(page: PdfPage, found: Iterable["_Found"]) -> tuple[Box, str]:
    """What a page shows, as it is shown, and the text outside of that."""
    area = placed_box(placement(page), *page.get_bbox())
    return area, " ".join(item.word.text for item in found if not area.holds(item.word.box))


def _is_cropped(page: PdfPage) -> bool:
    """Whether a page shows less than its media box."""
    return any(abs(one - other) > 1 for one, other in zip(page.get_bbox(), page.get_mediabox(), strict=True))


def _widen(page: PdfPage) -> None:
    """Make a page as large as its text: its box is wrong, e.g. that of the page before it was turned."""
    with closing(page.get_textpage()) as text:
        rectangles = [*(text.get_rect(at) for at in range(text.count_rects())), page.get_bbox()]
    lefts, bottoms, rights, tops = zip(*rectangles, strict=True)
    page.set_mediabox(min(lefts), min(bottoms), max(rights), max(tops))


def _common_turn(found: Iterable["_Found"]) -> int:
    """How far a page must be turned for nearly all of its text to run from left to right; 0 where no turn does that."""
    turns = Counter[int | None]()
    for item in found:
        turns[item.turn] += len(item.word.text) if item.visible else 0
    return next((turn for turn, letters in turns.items() if turn and letters >= _TURNED * turns.total()), 0)


@dataclass(slots=True)
class _Found:
    """A word before it is known whether its font's size is what it seems to be."""

    word: PageWord
    baseline: float  # from the page's top
    visible: bool
    turn: int | None  # see `CharacterStyle.turn`


def _word(text: PdfTextPage, run: list[Character], placed: PdfMatrix) -> _Found:
    """A word of its characters; its box is its ink."""
    parts = _parts(text, run, placed)
    style = mode(letter.style for is_up, part in parts for letter in part if not is_up)
    edges = [(letter.left, letter.bottom, letter.right, letter.top) for letter in run]
    lefts, bottoms, rights, tops = zip(*edges, strict=True)
    ink = placed_box(placed, min(lefts), min(bottoms), max(rights), max(tops))
    first = next(letter for letter in run if letter.style == style)
    written = ""
    for is_up, part in parts:
        written_part = word_text([(letter.text, letter.left, letter.right) for letter in part])
        written += superscript(written_part, written) if is_up else written_part
    word = PageWord(written, ink, style.size, style.font, style.bold, style.italic, style.turn == 0, style.color)
    return _Found(word, placed.on_point(*origin(text, first.position))[1], style.visible, style.turn)


def _parts(text: PdfTextPage, run: list[Character], placed: PdfMatrix) -> list[tuple[bool, list[Character]]]:
    """A word in parts, each with whether it is raised; one part where nothing is."""
    if run[0].style.turn != 0 or all(letter.style is run[0].style for letter in run):
        return [(False, run)]
    largest = max(run, key=lambda letter: letter.style.size)

    def height(letter: Character) -> float:
        return -placed.on_point(*origin(text, letter.position))[1]

    def is_up(letter: Character) -> bool:
        return is_raised(letter.style.size, height(letter) - height(largest), largest.style.size)

    return [(up, list(part)) for up, part in groupby(run, key=is_up)]


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


def _without_doubles(words: Sequence[PageWord]) -> tuple[list[PageWord], list[str]]:
    """Words drawn twice, slightly displaced, to look bold or to throw a shadow: one of them, bold; and the others."""
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
    kept = [replace(word, bold=True) if id(word) in bold else word for word in words if id(word) not in left_out]
    return kept, [word.text for word in words if id(word) in left_out]


def _displaced(one: PageWord, other: PageWord) -> bool:
    """Whether two equal words stand nearly in the same place."""
    return all(abs(a - b) <= _SHADOW * one.size for a, b in zip(one.box, other.box, strict=True))
