"""Initials: a first letter as high as lines of text, joined to the first of them, or large on its own line."""

from collections.abc import Sequence
from dataclasses import replace

from documents.pdf.lines import baseline, baseline_rows
from documents.pdf.page import PageWord

LARGER = 1.9  # times the text beside it
_NEAR = (-0.25, 0.6)  # initial's font sizes from its right edge to the text beside it
_WORD_APART = 0.2  # font sizes by which the first line begins further right than the second, after an initial "A"
_SAME_WORD = 0.25  # font sizes of an initial on its line from its right edge to the rest of its word
_ONE_LETTER_WORDS = frozenset("AIOEYUÀÁÉÓÔ\u0410\u0412\u0418\u041a\u041e\u0421\u0423\u042f")
_OPENING = "\"'\u201c\u201e\u2018\u00ab\u00bb\u2039\u203a\u00bf\u00a1("


def join_initials(words: Sequence[PageWord]) -> list[PageWord]:
    """The words of a page, each initial as the beginning of the word that it belongs to.

    The lines beside it begin where it does.
    """
    found = list(words)
    smallest = min((word.size for word in words), default=0.0)
    for initial in [word for word in words if smallest * LARGER <= word.size and _is_letter(word)]:
        beside = [_first(row) for row in baseline_rows(word for word in found if _beside(initial, word))]
        first = beside[0] if beside else initial
        hangs = len(beside) > 1 and baseline(first) <= baseline(initial) - 0.5 * first.size
        if not hangs and not (len(beside) == 1 and _begins_line(initial, first)):
            continue
        known = {word.text.casefold() for word in words if word is not first}
        apart = (hangs and first.box.left - min(word.box.left for word in beside[1:]) > _WORD_APART * first.size) or (
            initial.text in _ONE_LETTER_WORDS
            and first.text.casefold() in known
            and (initial.text + first.text).casefold() not in known
        )
        wide = {id(word): replace(word, box=word.box._replace(left=initial.box.left)) for word in beside}
        text = initial.text + (" " if apart else "") + first.text
        wide[id(first)] = replace(wide[id(first)], text=text)
        found = [wide.get(id(word), word) for word in found if word is not initial]
    return found


def _is_letter(word: PageWord) -> bool:
    text = word.text.lstrip(_OPENING)
    return len(text) == 1 and text.isalpha() and word.upright


def _begins_line(initial: PageWord, first: PageWord) -> bool:
    """Whether a word on an initial's own baseline goes on with it."""
    gap = first.box.left - initial.box.right
    level = abs(baseline(first) - baseline(initial)) <= 0.3 * first.size
    return level and gap <= _SAME_WORD * initial.size and len(first.text) > 1 and first.text.islower()


def _first(row: Sequence[PageWord]) -> PageWord:
    return min(row, key=lambda word: word.box.left)


def _beside(initial: PageWord, word: PageWord) -> bool:
    """Whether a word begins a line beside an initial."""
    return (
        word.size * LARGER <= initial.size
        and word.upright
        and _NEAR[0] * initial.size <= word.box.left - initial.box.right <= _NEAR[1] * initial.size
        and -0.3 * word.size <= baseline(initial) - baseline(word) <= 0.85 * initial.size
    )
