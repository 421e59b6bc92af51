"""Stacked fractions in a line of text as a/b: short texts above and below a stroke at half the height of the line."""

from dataclasses import replace

from documents.pdf.clusters import around
from documents.pdf.lines import baseline, page_lines
from documents.pdf.page import Box, Page, PageWord

_LONGEST = 12.0  # of the stroke; all in font sizes of the line
_AXIS, _SLACK = 0.27, 0.2  # height of the stroke above the line's baseline, and how far it may be from that
_REACH = 1.0  # to the line's next word, and from the stroke to words above or below it that are not of the fraction
_HEIGHT = 1.1  # from the stroke to the middles of the texts above and below it; the next lines are further
_LONGER = 0.6  # of the stroke than its texts at most; a table's rules are longer


def join_fractions(page: Page) -> Page:
    """A page with each clear fraction as one word."""
    words = page.words
    for stroke in (rule.box for rule in page.rules if rule.box.width > rule.box.height):
        line = next((word for word in words if _is_beside(word, stroke)), None)
        if line is not None:
            words = _joined(words, stroke, line)
    return replace(page, words=words)


def _is_beside(word: PageWord, stroke: Box) -> bool:
    """Whether a word stands beside a stroke that is as high above its baseline as that of a fraction."""
    height = baseline(word) - stroke.middle - _AXIS * word.size
    gap = max(stroke.left - word.box.right, word.box.left - stroke.right)
    is_near = abs(height) <= _SLACK * word.size and -_SLACK * word.size <= gap <= _REACH * word.size
    return word.upright and is_near and stroke.width <= _LONGEST * word.size


def _joined(words: tuple[PageWord, ...], stroke: Box, line: PageWord) -> tuple[PageWord, ...]:
    """The words of a page with a fraction as one; as they are where it is not clear."""
    size, y = line.size, stroke.middle
    near = [
        word
        for word in words
        if abs(word.box.middle - y) <= _HEIGHT * size
        and stroke.left - _REACH * size < word.box.right
        and word.box.left < stroke.right + _REACH * size
        and abs(baseline(word) - baseline(line)) > _SLACK * size
    ]
    sides = [[word for word in near if (baseline(word) < y + _SLACK * size / 2) is above] for above in (True, False)]
    texts = [page_lines(side, 0) for side in sides]
    box = around([word.box for word in near]) if near else stroke
    inside = stroke.left - _SLACK * size <= box.left and box.right <= stroke.right + _SLACK * size
    if [*map(len, texts)] != [1, 1] or not inside or stroke.width - box.width > _LONGER * size:
        return words
    over, under = (f"({each.text})" if " " in each.text else each.text for (each,) in texts)
    place = Box(stroke.left, line.box.top, stroke.right, line.box.bottom)
    fraction = replace(line, text=f"{over}/{under}", box=place)
    return (*(word for word in words if all(word is not other for other in near)), fraction)
