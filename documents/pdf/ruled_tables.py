"""Areas of a page that ruling lines say are tables: grids, and lines of the same extent above each other (booktabs)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from documents.pdf.clusters import around, groups
from documents.pdf.page import Box, Page
from documents.pdf.table_columns import covered
from documents.pdf.table_lines import lines_of, words_in
from documents.pdf.table_reader import Area
from documents.pdf.tabular import is_tabular

TOUCH = 3.0  # points between rules of one grid
APART = 6.0  # points between boxes of a diagram
SAME_EDGE = 4.0  # points that the ends of rules above each other differ by
NARROWEST, LOWEST = 40.0, 12.0  # points of a table's sides
FRAME_SHARE = 0.6  # of a page's height
MAX_RULES = 4000  # of a page; what has more is a drawing


def grids(page: Page) -> list[Area]:
    """Areas where horizontal and vertical rules meet."""
    boxes = [rule.box for rule in page.rules]
    if len(boxes) > MAX_RULES or len({is_horizontal(box) for box in boxes}) < 2:
        return []
    areas = [area_of([boxes[index] for index in group], page) for group in groups(boxes, TOUCH) if len(group) > 2]
    return [
        area
        for area in areas
        if area.verticals
        and area.horizontals
        and is_large(area.box)
        and not _is_frame(area, page)
        and not _are_boxes_apart(area)
    ]


def lined(page: Page, taken: Sequence[Box]) -> list[Area]:
    """Areas between horizontal rules of the same extent that hold columns of text.

    Args:
        page: The page.
        taken: Areas that are tables already.
    """
    rules = [
        rule.box for rule in page.rules if is_horizontal(rule.box) and not any(box.contains(rule.box) for box in taken)
    ]
    if len(rules) > MAX_RULES:
        return []
    found = stacks(sorted((rule for rule in rules if rule.width >= NARROWEST), key=lambda rule: rule.top), SAME_EDGE)
    return [area for stack in found for area in _tables_of(stack, page)]


def stacks(boxes: Iterable[Box], slack: float) -> list[list[Box]]:
    """Boxes of the same extent above each other.

    Args:
        boxes: From the top.
        slack: Points that their ends differ by at most.
    """
    found: list[list[Box]] = []
    for box in boxes:
        for stack in found:
            if max(abs(stack[-1].left - box.left), abs(stack[-1].right - box.right)) <= slack:
                stack.append(box)
                break
        else:
            found.append([box])
    return found


def is_horizontal(rule: Box) -> bool:
    """Whether a rule is wider than high."""
    return rule.width >= rule.height


def is_large(box: Box) -> bool:
    """Whether a box is large enough for a table."""
    return box.width >= NARROWEST and box.height >= LOWEST


def area_of(boxes: Sequence[Box], page: Page) -> Area:
    """The area around boxes, with all rules and fills in it."""
    box = around(boxes)
    inside = [rule.box for rule in page.rules if box.contains(rule.box)]
    horizontals = tuple(rule for rule in inside if is_horizontal(rule))
    verticals = tuple(rule for rule in inside if not is_horizontal(rule))
    fills = tuple(fill for fill in page.fills if box.contains(fill) and fill.height < 0.9 * box.height)
    return Area(box, horizontals, verticals, fills)


def _is_frame(area: Area, page: Page) -> bool:
    """Whether a grid has no line within it and is as high as a page's text."""
    box = area.box
    within = [rule for rule in area.verticals if box.left + TOUCH < rule.left and rule.right < box.right - TOUCH]
    return not within and box.height >= FRAME_SHARE * page.height


def _are_boxes_apart(area: Area) -> bool:
    """Whether rules are a diagram's.

    Boxes with room between them at two opposite sides of the area, which a table closes or leaves open.
    """
    box = area.box
    tops, bottoms, lefts, rights = (
        [(rule.left, rule.right) for rule in area.horizontals if rule.top <= box.top + TOUCH],
        [(rule.left, rule.right) for rule in area.horizontals if rule.bottom >= box.bottom - TOUCH],
        [(rule.top, rule.bottom) for rule in area.verticals if rule.left <= box.left + TOUCH],
        [(rule.top, rule.bottom) for rule in area.verticals if rule.right >= box.right - TOUCH],
    )
    return (_are_apart(tops) and _are_apart(bottoms)) or (_are_apart(lefts) and _are_apart(rights))


def _are_apart(spans: Sequence[tuple[float, float]]) -> bool:
    return any(after[0] - before[1] > APART for before, after in pairwise(covered(spans, 0)))


def _tables_of(stack: Sequence[Box], page: Page) -> list[Area]:
    """Runs of bands between the rules that read as columns.

    A line of text between two such bands is the heading of a group of rows.
    """
    runs: list[list[Box]] = []
    joins = False
    for above, below in pairwise(stack):
        if not joins and below.top - above.top >= FRAME_SHARE * page.height:
            continue  # the rules of running header and footer
        lines = lines_of(words_in(page.words, Box(above.left, above.top, above.right, below.bottom)))
        goes_on = is_tabular(lines) or (joins and len(lines) == 1)
        if goes_on and joins:
            runs[-1].append(below)
        elif goes_on:
            runs.append([above, below])
        joins = goes_on
    areas = [area_of(run, page) for run in runs]
    return [area for area in areas if is_large(area.box)]
