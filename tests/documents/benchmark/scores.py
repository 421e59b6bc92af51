"""Scores of a document that was read beside its truth.

Headings (precision, recall, F1, MHS), tables (TEDS), text lost and invented, pairs of words lost.

What each score means stands in `benchmarks/results/documents/README.md`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from unicodedata import normalize

from scipy.optimize import linear_sum_assignment

from documents.fidelity import fidelity, words
from documents.records import Block, Document, Heading, Image, Paragraph, Table
from tests.documents.benchmark.trees import Tree, similarity, tree_edit_distance

ALIKE = 0.8  # similarity from which a heading that was read is taken for the true one
NUMBER = re.compile(
    r"(?:(?:chapter|section|appendix|part)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXLC]+)[.:)]?\s+(?=\S)", re.IGNORECASE
)
# Headings that programs print by themselves, and that a source need not hold: they count for nobody and against nobody.
_PRINTED_BY_PROGRAMS = {
    "abstract", "contents", "tableofcontents", "listoffigures", "listoftables", "references", "bibliography", "index",
    "nomenclature", "keywords", "acknowledgments", "acknowledgements",
}  # fmt: skip
Rows = Sequence[Sequence[str]]
Label = tuple[str, str | tuple[str, ...]]  # kind of node, and a heading's or cell's text, or a section's words


def scores(truth: Document, read: Document, judge_tables: bool = True) -> dict[str, float]:
    """Compare a document with its truth.

    Args:
        truth: What it holds.
        read: What was read.
        judge_tables: Whether the truth has its tables.

    Returns:
        Scores from 0 to 1, those left out of which the truth holds nothing to find: `precision` and `recall` (shares of
        the headings read and of the true ones), `f1`, `mhs` (headings with their text), `mhs_structure` (whatever the
        text), `outline` (headings in their levels, without text between them), `teds` (mean over the true tables),
        `extra_tables` (how many of those read are no true one's), `lost` (share of the true words), `invented` (share
        of the words read), `pairs_lost` (share of the pairs of neighbouring true words that are no neighbours now).
    """
    both = [_judged(document, truth.title) for document in (truth, read)]
    true_headings, headings = ([block for block in blocks if isinstance(block, Heading)] for blocks in both)
    found = dict(zip(("precision", "recall", "f1"), heading_scores(true_headings, headings), strict=False))
    if true_headings:
        found |= {"mhs": 0.0, "mhs_structure": 0.0, "outline": 0.0}
    if true_headings and headings:
        found["mhs"] = _tree_similarity(*map(sections, both))
        found["mhs_structure"] = _tree_similarity(*(sections(blocks, with_text=False) for blocks in both))
        found["outline"] = _tree_similarity(nested(true_headings), nested(headings))
    if judge_tables:
        true_tables, tables = ([block.rows for block in blocks if isinstance(block, Table)] for blocks in both)
        mean, matched = table_scores(true_tables, tables)
        found |= (
            {"extra_tables": len(tables) - matched}
            if mean is None
            else {"teds": mean, "extra_tables": len(tables) - matched}
        )
    texts = ["\n".join(part for block in blocks for part in _parts(block)) for blocks in both]
    found["lost"], found["invented"] = fidelity(*texts)
    return found | {"pairs_lost": fidelity(*texts, in_a_row=2).lost}


def _judged(document: Document, title: str) -> list[Block]:
    """A document's blocks without those headings that are not judged: the title, and what programs print."""
    blocks: list[Block] = []
    title_seen = False
    for block in document.blocks:
        if isinstance(block, Heading):
            is_title = not title_seen and similarity("".join(words(block.text)), "".join(words(title))) >= ALIKE
            title_seen |= is_title
            plain = "".join(words(NUMBER.sub("", block.text)))
            if is_title or plain in _PRINTED_BY_PROGRAMS or not words(block.text):
                continue
        blocks.append(block)
    return blocks


def _parts(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield block.caption
        yield from (cell for row in block.rows for cell in row)
    elif isinstance(block, Image):
        yield from (block.caption, block.text)
    else:
        yield block.text


def heading_scores(true: Sequence[Heading], read: Sequence[Heading]) -> tuple[float, ...]:
    """Precision, recall and F1 of headings, in the order of the document, whatever their levels.

    A heading that was read may stand for a true one if their texts are alike without numbers, case, blanks and signs;
    the most headings that keep the order are paired, each once.
    """
    if not true:
        return ()
    pairs = [0] * (len(read) + 1)
    for one in true:
        above, pairs = pairs, [0]
        for column, other in enumerate(read):
            found = above[column] + 1 if _alike(one.text, other.text) >= ALIKE else 0
            pairs.append(max(pairs[-1], above[column + 1], found))
    found = pairs[-1]
    return found / max(len(read), 1), found / len(true), 2 * found / (len(read) + len(true))


@cache
def _keys(heading: str) -> frozenset[str]:
    """A heading's letters and digits, with and without its number."""
    return frozenset("".join(words(text)) for text in (heading, NUMBER.sub("", heading, count=1))) - {""}


@cache
def _alike(one: str, other: str) -> float:
    """Similarity of two headings' characters, the number of either left out where that makes them more alike."""
    return max((similarity(a, b) for a in _keys(one) for b in _keys(other)), default=float(one == other))


def sections(blocks: Iterable[Block], with_text: bool = True) -> Tree:
    """The tree that MHS compares.

    Headings side by side whatever their levels, each above a node of its section's words.

    Words in tables and images do not count.
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    for block in blocks:
        if isinstance(block, Heading):
            found.append((block.text, []))
        elif isinstance(block, Paragraph):
            found[-1][1].extend(words(block.text))
    leaves = [(Tree(("content", tuple(content) if with_text else ())),) if content else () for _, content in found]
    named = [Tree(("heading", text if with_text else ""), leaf) for (text, _), leaf in zip(found, leaves, strict=True)]
    return Tree(("document", ""), (*leaves[0], *named[1:]))


def nested(headings: Sequence[Heading]) -> Tree:
    """Headings as a tree: each below the last one before it that has a lower level."""

    def below(start: int, level: int) -> tuple[tuple[Tree, ...], int]:
        trees: list[Tree] = []
        while start < len(headings) and headings[start].level > level:
            heading = headings[start]
            children, start = below(start + 1, heading.level)
            trees.append(Tree(("heading", heading.text), children))
        return tuple(trees), start

    return Tree(("document", ""), below(0, 0)[0])


def _tree_similarity(one: Tree, other: Tree, rooted: bool = True) -> float:
    """1 less the edit distance divided by the larger number of nodes; 0 where the distance is larger than that."""
    nodes = max(one.size, other.size) - (not rooted)
    return max(0.0, 1 - tree_edit_distance(one, other, _cost) / nodes) if nodes else 1.0


def _cost(one: Label, other: Label) -> float:
    """1 less the similarity of two texts' characters or two sections' words; 1 between nodes of two kinds."""
    if one[0] != other[0]:
        return 1.0
    if one[0] == "heading" and isinstance(one[1], str) and isinstance(other[1], str):
        return 1 - _alike(one[1], other[1])
    return 1 - similarity(one[1], other[1])


def table_scores(true: Sequence[Rows], read: Sequence[Rows]) -> tuple[float | None, int]:
    """Mean TEDS over the true tables, and how many of the tables read were matched.

    Each table that was read is matched with at most one true one, so that the sum of TEDS is largest; a true table
    without a match counts 0. Two tables may be matched if they share at least half of the distinct words of the one
    that has fewer.
    """
    if not true:
        return None, 0
    table = [[0.0] * len(read) for _ in true]
    known, other_known = ([{*words(" ".join(map(" ".join, rows)))} for rows in tables] for tables in (true, read))
    for i, one in enumerate(known):
        for j, other in enumerate(other_known):
            if one & other and 2 * len(one & other) >= min(len(one), len(other)):
                table[i][j] = teds(true[i], read[j])
    pairs = zip(*linear_sum_assignment(table, maximize=True), strict=True) if read else ()
    chosen = [table[i][j] for i, j in pairs]
    return sum(chosen) / len(true), sum(score > 0 for score in chosen)


def teds(one: Rows, other: Rows) -> float:
    """Tree-edit-distance similarity of two tables (Zhong et al., 2020): 1 for equal ones.

    Trees are table, rows, cells; relabelling a cell costs the normalized edit distance of the characters, in NFKC (a
    truth may raise a figure or not) and with blanks collapsed. The score is 1 less the distance divided by the larger
    number of rows and cells. A cell that repeats the one on its left or above counts as empty, so that it does not
    matter whether a spanning cell is repeated.
    """
    return _tree_similarity(_table_tree(one), _table_tree(other), rooted=False)


def _table_tree(rows: Rows) -> Tree:
    plain = [[" ".join(normalize("NFKC", cell).split()) for cell in row] for row in rows]

    def cell(x: int, y: int) -> Tree:
        text = plain[y][x]
        is_repeated = (x and plain[y][x - 1] == text) or (y and plain[y - 1][x : x + 1] == [text])
        return Tree(("cell", "" if is_repeated else text))

    lines = [tuple(cell(x, y) for x in range(len(row))) for y, row in enumerate(plain)]
    return Tree(("table", ""), tuple(Tree(("row", ""), cells) for cells in lines))
