"""How hard the world's library is.

Share of its questions of which plain BM25 and MiniLM find gold segments among the first five, over fixed chunks of the
manuals' true text and over true sections, each with less or more metadata.

    python -m tests.documents.benchmark.library_difficulty --world data/world --split test

Prints Markdown: hit@5 (a gold segment is found) and recall@5 (share of the question's gold segments that are found), in
percent, over all questions and by kind.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from common.gold_segments import is_relevant
from common.records import Passage, Question
from datamodules.formats.reading import read_questions
from documents.segments.augmentation import Cascade, passages, segments
from documents.segments.chunking import fixed_chunks
from harness.evaluation.tables import markdown_table
from harness.indexing.passage_store import indexed_text
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.documents.benchmark.library_truth import library_truth

WORDS = 120  # of a chunk
K = 5
CUTS: dict[str, tuple[bool, Cascade]] = {  # whether by sections, and what stands before the text
    "fixed chunks": (False, "none"),
    "fixed chunks, title": (False, "path"),
    "sections": (True, "none"),
    "sections, own heading": (True, "heading"),
    "sections, whole path": (True, "path"),
}
Rank = Callable[[Sequence[Question], Sequence[Passage]], list[list[Passage]]]


def by_bm25(questions: Sequence[Question], corpus: Sequence[Passage]) -> list[list[Passage]]:
    """The best `K` passages of each question by BM25."""
    with TemporaryDirectory() as folder:
        build_bm25(corpus, Path(folder) / "index")
        found = Bm25Retriever(Path(folder) / "index").search([one.text for one in questions], K)
    return [[hit.passage for hit in hits] for hits in found]


def by_minilm(questions: Sequence[Question], corpus: Sequence[Passage]) -> list[list[Passage]]:
    """The best `K` passages of each question by the cosine of MiniLM's vectors."""
    encoder = SentenceEncoder()
    corpus_ND = encoder.encode_passages([indexed_text(one) for one in corpus])
    scores_QN = encoder.encode_queries([one.text for one in questions]) @ corpus_ND.T
    return [[corpus[place] for place in np.argsort(-row_N, kind="stable")[:K]] for row_N in scores_QN]


def recalls(questions: Sequence[Question], found: Sequence[Sequence[Passage]]) -> np.ndarray:
    """Share of each question's gold segments that are found, (Q,)."""
    return np.array([
        np.mean([any(is_relevant(one, gold) for one in top) for gold in question.gold.segments])
        for question, top in zip(questions, found, strict=True)
    ])  # fmt: skip


def table(world: Path, split: str, ways: dict[str, Rank]) -> list[str]:
    """The lines of the Markdown table."""
    documents = library_truth(world)
    questions = list(read_questions("flashrag", str(world / f"library_{split}.jsonl")))
    kinds = sorted({one.kind for one in questions})
    rows = []
    for label, (by_section, cascade) in CUTS.items():
        cut = [segments(each) if by_section else fixed_chunks(each, WORDS, 0) for each in documents]
        corpus = passages((segment for each in cut for segment in each), cascade)
        for way, rank in ways.items():
            recall_Q = recalls(questions, rank(questions, corpus))
            of_kind = [recall_Q[[one.kind == kind for one in questions]] for kind in kinds]
            shares = [f"{np.mean(each > 0):.1%} / {each.mean():.1%}" for each in (recall_Q, *of_kind)]
            rows.append([label, way, f"{len(corpus):,}", *shares])
    return markdown_table(["", "", "passages", "all", *kinds], rows)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--world", type=Path, default=Path("data/world"))
    options.add_argument("--split", choices=("test", "validation"), default="test")
    return options


def main() -> None:
    """Run the command."""
    given = parser().parse_args()
    print("\n".join(table(given.world, given.split, {"BM25": by_bm25, "MiniLM": by_minilm})))


if __name__ == "__main__":
    main()
