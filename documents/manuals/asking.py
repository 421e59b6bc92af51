"""Asks questions about the library's manuals, of the kinds of HiQA's question bank (appendix B.4).

Each has its gold segments.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from documents.manuals.asking_one import calculation, choice, descriptive, image, table
from documents.manuals.asking_several import across, comparison
from documents.manuals.manual import Manual
from documents.manuals.questions import Draws, LibraryQuestion

QUESTIONS = {"test": 64, "validation": 32}  # of each kind
_DRAWN = (descriptive, choice, table, comparison, across, calculation, image)
KINDS: dict[str, Callable[[Draws, Manual], LibraryQuestion]] = {draw.__name__: draw for draw in _DRAWN}


def ask(manuals: Sequence[Manual], split: str, random: Random) -> list[LibraryQuestion]:
    """`QUESTIONS[split]` questions of each kind about the products of a split, in random order."""
    own = [manual for manual in manuals if manual.product.split == split]
    draws = Draws(own, manuals, [*QUESTIONS].index(split), random)
    asked: dict[str, LibraryQuestion] = {}
    for kind, draw in KINDS.items():
        turns, wanted = draws.turns(), len(asked) + QUESTIONS[split]
        while len(asked) < wanted:
            one = replace(draw(draws, next(turns)), kind=kind)
            asked.setdefault(one.text, one)
    made = list(asked.values())
    random.shuffle(made)
    return made
