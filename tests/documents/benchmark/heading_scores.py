"""Headings that were read beside the true ones: precision, recall, F1, and similarities of trees (MHS)."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from documents.fidelity import words
from documents.records import Block, Heading, Paragraph
from tests.documents.benchmark.trees import Tree, similarity, tree_edit_distance

ALIKE = 0.8  # similarity from which a heading that was read is taken for the true one
NUMBER = re.compile(
    r"(?:(?:chapter|section|appendix|part)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXLC]+)[.:)]?\s+(?=\S)", re.IGNORECASE
)


def heading_scores(true: Sequence[Heading], read: Sequence[Heading]) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1 of headings, in the order of the document, whatever their levels.

    A heading that was read may stand for a true one if their texts are alike without numbers, case, blanks and signs;
    the most headings that keep the order are paired, each once.
    """
    if not true:
        return None, None, None
    pairs = [0] * (len(read) + 1)
    for one in true:
        above, pairs = pairs, [0]
        for column, other in enumerate(read):
            found = above[column] + 1 if _alike(one.text, other.text) >= ALIKE else 0
            pairs.append(max(pairs[-1], above[column + 1], found))
    found = pairs[-1]
    if not found:
        return 0.0, 0.0, 0.0
    return found / len(read), found / len(true), 2 * found / (len(read) + len(true))


@cache
def _keys(heading: str) -> frozenset[str]:
    """A heading's letters and digits, with and without its number."""
    return frozenset("".join(words(text)) for text in (heading, NUMBER.sub("", heading, count=1))) - {""}


@cache
def _alike(one: str, other: str) -> float:
    """Similarity of two headings' characters, the number of either left out where that makes them more alike."""
    first, second = _keys(one), _keys(other)
    if first & second:
        return 1.0
    return max((similarity(a, b) for a in first for b in second), default=0.0)


Label = tuple[str, str | tuple[str, ...]]  # kind of node, and a heading's text or a section's words


def sections(blocks: Iterable[Block]) -> Tree[Label]:
    """The tree that MHS compares.

    Headings side by side whatever their levels, each above a node of its section's words.

    Words in tables and images do not count.
    """
    found: list[tuple[str | None, list[str]]] = [(None, [])]
    for block in blocks:
        if isinstance(block, Heading):
            found.append((block.text, []))
        elif isinstance(block, Paragraph):
            found[-1][1].extend(words(block.text))
    trees: list[Tree[Label]] = []
    for heading, content in found:
        leaf: tuple[Tree[Label], ...] = (Tree(("content", tuple(content))),) if content else ()
        trees += leaf if heading is None else (Tree(("heading", heading), leaf),)
    return Tree(("document", ""), tuple(trees))


def nested(headings: Sequence[Heading]) -> Tree[Label]:
    """Headings as a tree: each below the last one before it that has a lower level."""

    def below(start: int, level: int) -> tuple[tuple[Tree[Label], ...], int]:
        trees: list[Tree[Label]] = []
        while start < len(headings) and headings[start].level > level:
            heading = headings[start]
            children, start = below(start + 1, heading.level)
            trees.append(Tree(("heading", heading.text), children))
        return tuple(trees), start

    return Tree(("document", ""), below(0, 0)[0])


def tree_similarity(one: Tree[Label], other: Tree[Label], cost: Callable[[Label, Label], float]) -> float:
    """1 less the edit distance divided by the larger number of nodes; 0 where the distance is larger than that."""
    return max(0.0, 1 - tree_edit_distance(one, other, cost) / max(one.size, other.size))


def kind_cost(one: Label, other: Label) -> float:
    """1 between a heading and a section's words, else 0."""
    return float(one[0] != other[0])


def text_cost(one: Label, other: Label) -> float:
    """1 less the similarity of two headings' characters or two sections' words; 1 between a heading and words."""
    if one[0] != other[0]:
        return 1.0
    if isinstance(one[1], str) and isinstance(other[1], str):
        return 1 - _alike(one[1], other[1]) if one[0] == "heading" else 0.0
    return 1 - similarity(one[1], other[1])
