"""What is set sideways on a page, e.g. a wide table: the page turned so that it runs from left to right."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from harness.documents.pdf.page import Box, Page, Rule, Word

LEAST_WORDS = 12  # fewer are labels


@dataclass(frozen=True, slots=True)
class Turned:
    """A page turned by 90 degrees, with the words that were sideways and now are not."""

    page: Page
    upwards: bool  # whether these words run from the bottom to the top of the page as it is shown

    def back(self, box: Box) -> Box:
        """Where a box of the turned page is on the page as it is shown."""
        if self.upwards:
            return Box(box.top, self.page.width - box.right, box.bottom, self.page.width - box.left)
        return Box(self.page.height - box.bottom, box.left, self.page.height - box.top, box.right)


def turned(page: Page) -> Turned | None:
    """The page turned so that its sideways words run from left to right; None if there are few."""
    sideways = [word for word in page.words if not word.upright]
    if len(sideways) < LEAST_WORDS:
        return None
    upwards = _run_upwards(sideways)

    def turn(box: Box) -> Box:
        if upwards:
            return Box(page.height - box.bottom, box.left, page.height - box.top, box.right)
        return Box(box.top, page.width - box.right, box.bottom, page.width - box.left)

    return Turned(
        replace(
            page,
            width=page.height,
            height=page.width,
            words=tuple(replace(word, box=turn(word.box), upright=True) for word in sideways),
            rules=tuple(Rule(turn(rule.box)) for rule in page.rules),
            fills=tuple(map(turn, page.fills)),
            bitmaps=tuple(map(turn, page.bitmaps)),
            drawings=tuple(map(turn, page.drawings)),
        ),
        upwards,
    )


def _run_upwards(words: Sequence[Word]) -> bool:
    """Whether words that follow each other in the file mostly stand above each other."""
    steps = [
        after.box.top - before.box.top
        for before, after in pairwise(words)
        if min(after.box.right, before.box.right) > max(after.box.left, before.box.left)
    ]
    return sum(step < 0 for step in steps) >= sum(step > 0 for step in steps)
