"""How hard the world's library is: share of its questions of which plain BM25 and MiniLM find gold segments among the first five, over
fixed chunks of the manuals' true text, with and without the document's title, and over true sections with their heading paths.

    python -m benchmarks.library_difficulty --world data/world --split test
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from common.gold_segments import is_relevant
from common.records import Passage, Question
from datamodules.formats.reading import read_questions
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.retrievers.bm25 import Bm25Retriever, build_bm25

WORDS = 120  # of a chunk
K = 5


def lines(block: dict) -> str:
    """A block's text, a table row by row."""
    if block["kind"] == "table":
        return f"{block['caption']} " + " ".join(" | ".join(row) for row in block["rows"])
    return " ".join([*block.get("labels", ()), block["caption"]]) if block["kind"] == "image" else block["text"]


def passage(name: str, place: object, text: str, title: str) -> Passage:
    """A passage that is equal to none of another manual."""
    return Passage(f"{name} {place}", text, title, metadata={"document": name})


def chunks(name: str, truth: dict, titled: bool) -> Iterator[Passage]:
    """Chunks of `WORDS` words."""
    words = " ".join([truth["title"], *map(lines, truth["blocks"])]).split()
    for start in range(0, len(words), WORDS):
        text = " ".join(words[start : start + WORDS])
        yield passage(name, start, text, truth["title"] if titled else "")


def sections(name: str, truth: dict, metadata: str) -> Iterator[Passage]:
    """What stands under each heading; its title is the heading's path ("path"), the heading alone ("heading") or nothing ("")."""
    path: list[str] = []
    texts: dict[tuple[str, ...], list[str]] = {}
    for block in truth["blocks"]:
        if block["kind"] == "heading":
            path[block["level"] - 1 :] = [block["text"]]
        else:
            texts.setdefault(tuple(path), []).append(lines(block))
    for headings, parts in texts.items():
        title = {"path": " > ".join([truth["title"], *headings]), "heading": headings[-1], "": ""}[metadata]
        yield passage(name, headings, " ".join(parts), title)


def ranked_by_minilm(questions: list[Question], passages: list[Passage]) -> list[list[Passage]]:
    """The best `K` passages of each question by cosine."""
    encoder = SentenceEncoder()
    passages_ND = encoder.encode_passages([f"{one.title} {one.text}" for one in passages])
    scores_QN = encoder.encode_queries([one.text for one in questions]) @ passages_ND.T
    return [[passages[place] for place in np.argsort(-row_N, kind="stable")[:K]] for row_N in scores_QN]


def ranked_by_bm25(questions: list[Question], passages: list[Passage]) -> list[list[Passage]]:
    """The best `K` passages of each question by BM25."""
    with TemporaryDirectory() as folder:
        build_bm25(passages, Path(folder) / "index")
        hits = Bm25Retriever(Path(folder) / "index").search([one.text for one in questions], K)
    place = {one.id: one for one in passages}
    return [[place[hit.passage.id] for hit in row] for row in hits]


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", type=Path, default=Path("data/world"))
    parser.add_argument("--split", default="test")
    given = parser.parse_args()
    truths = {
        f"{path.stem}.pdf": json.loads(path.read_text()) for path in sorted((given.world / "library/truth").iterdir())
    }
    questions = list(read_questions("flashrag", str(given.world / f"library_{given.split}.jsonl")))
    kinds = sorted({one.kind for one in questions})
    print("hit@5 (any gold segment) | recall@5 of gold segments;", *kinds)
    for label, cut in (
        ("fixed chunks", lambda name, truth: chunks(name, truth, False)),
        ("fixed chunks, title prepended", lambda name, truth: chunks(name, truth, True)),
        ("sections", lambda name, truth: sections(name, truth, "")),
        ("sections, own heading", lambda name, truth: sections(name, truth, "heading")),
        ("sections, whole path", lambda name, truth: sections(name, truth, "path")),
    ):
        passages = [one for name, truth in truths.items() for one in cut(name, truth)]
        for way, rank in (("BM25", ranked_by_bm25), ("MiniLM", ranked_by_minilm)):
            found = rank(questions, passages)
            recall = np.array([
                np.mean([any(is_relevant(one, gold) for one in top) for gold in question.gold_segments])
                for question, top in zip(questions, found, strict=True)
            ])  # fmt: skip
            of_kind = [np.array([one.kind == kind for one in questions]) for kind in kinds]
            by_kind = " ".join(f"{np.mean(recall[each] > 0):.0%}|{recall[each].mean():.0%}" for each in of_kind)
            print(f"{label}, {way} ({len(passages)}): {np.mean(recall > 0):.1%} | {recall.mean():.1%}; {by_kind}")


if __name__ == "__main__":
    main()
