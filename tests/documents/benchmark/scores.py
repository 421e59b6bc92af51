"""Scores of a document that was read beside its truth.

Headings (precision, recall, F1, MHS), tables (TEDS), text lost and invented, pairs of words lost.

What each score means stands in `benchmarks/results/documents/README.md`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from documents.fidelity import fidelity, words
from documents.records import Block, Document, Heading, Image, Table
from tests.documents.benchmark.heading_scores import (
    ALIKE,
    NUMBER,
    heading_scores,
    kind_cost,
    nested,
    sections,
    text_cost,
    tree_similarity,
)
from tests.documents.benchmark.table_scores import table_scores
from tests.documents.benchmark.trees import similarity

# Headings that programs print by themselves, and that a source need not hold: they count for nobody and against nobody.
_PRINTED_BY_PROGRAMS = {
    "abstract", "contents", "tableofcontents", "listoffigures", "listoftables", "references", "bibliography", "index",
    "nomenclature", "keywords", "acknowledgments", "acknowledgements",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores from 0 to 1; None where the truth holds nothing to find."""

    precision: float | None  # share of the headings read that are true ones
    recall: float | None  # share of the true headings that were read
    f1: float | None
    mhs: float | None  # headings with their text
    mhs_structure: float | None  # as `mhs`, whatever the text
    outline: float | None  # headings in their levels, without text between them
    teds: float | None  # mean over the true tables
    extra_tables: int | None  # read, but no true one's
    lost: float  # share of the true words
    invented: float  # share of the words read
    pairs_lost: float  # share of the pairs of neighbouring true words that are no neighbours any more


def scores(truth: Document, read: Document, judge_tables: bool = True) -> Scores:
    """Compare a document with its truth.

    Args:
        truth: What it holds.
        read: What was read.
        judge_tables: Whether the truth has its tables.
    """
    true_blocks, blocks = _judged(truth, truth.title), _judged(read, truth.title)
    true_headings = [block for block in true_blocks if isinstance(block, Heading)]
    headings = [block for block in blocks if isinstance(block, Heading)]
    precision, recall, f1 = heading_scores(true_headings, headings)
    mhs = mhs_structure = outline = None
    if true_headings:
        mhs = mhs_structure = outline = 0.0
    if true_headings and headings:
        one, other = sections(true_blocks), sections(blocks)
        mhs, mhs_structure = tree_similarity(one, other, text_cost), tree_similarity(one, other, kind_cost)
        outline = tree_similarity(nested(true_headings), nested(headings), text_cost)
    teds_mean = extra = None
    if judge_tables:
        true_tables = [block.rows for block in true_blocks if isinstance(block, Table)]
        tables = [block.rows for block in blocks if isinstance(block, Table)]
        teds_mean, matched = table_scores(true_tables, tables)
        extra = len(tables) - matched
    true_text, text = _text(true_blocks), _text(blocks)
    lost, invented = fidelity(true_text, text)
    pairs_lost = fidelity(true_text, text, in_a_row=2).lost
    return Scores(precision, recall, f1, mhs, mhs_structure, outline, teds_mean, extra, lost, invented, pairs_lost)


def _judged(document: Document, title: str) -> list[Block]:
    """A document's blocks without those headings that are not judged.

    The title, and what programs print by themselves.
    """
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


def _text(blocks: Iterable[Block]) -> str:
    return "\n".join(part for block in blocks for part in _parts(block))


def _parts(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield block.caption
        yield from (cell for row in block.rows for cell in row)
    elif isinstance(block, Image):
        yield from (block.caption, block.text)
    else:
        yield block.text
