"""A corpus small enough to work out by hand.

BM25 finds the first passage of a question, and the second only through it.
"""

import json
import zlib
from collections.abc import Iterable
from pathlib import Path

from common.records import Passage
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.helpers.layout_rows import hotpot_row, source

TEXTS = {
    "Alba": "alba river joins brune",
    "Brune": "brune ends ocean",  # no word of its question: found through Alba alone
    "Calder": "calder river joins dorn",
    "Dorn": "dorn ends lake",
    "Alba (ship)": "alba brune steamer",  # shares words with q*, is no gold
    "Elbe": "elbe mountain",
    "Fulda": "fulda mountain",
}
PASSAGES = {title: Passage.of(title, text) for title, text in TEXTS.items()}
IDS = {title: passage.id for title, passage in PASSAGES.items()}
QUESTIONS = [
    ("q1", "alba river", "bridge", ["Alba", "Brune"]),
    ("q2", "calder river", "bridge", ["Calder", "Dorn"]),
    ("q3", "elbe fulda mountain", "comparison", ["Elbe", "Fulda"]),
]


class TableScorer:
    """Gives the pairs of one table a high probability, and counts what it is asked."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.threshold = 0.5
        self.pairs = {(PASSAGES[one].id, PASSAGES[other].id) for one, other in pairs}
        self.asked: list[tuple[str, str, str]] = []

    def probabilities(self, triples):
        self.asked += [(question, d1.title, d2.title) for question, d1, d2 in triples]
        return [0.9 if (d1.id, d2.id) in self.pairs else 0.1 for _, d1, d2 in triples]


class Digest:
    """Pair scores that depend on the question and on the order of the pair."""

    threshold = 0.5

    def probabilities(self, triples):
        return [zlib.crc32(f"{question}|{d1.id}|{d2.id}".encode()) / 2**32 for question, d1, d2 in triples]


def gold_scorer() -> TableScorer:
    """Right about every gold pair, in both orders."""
    pairs = [tuple(gold) for *_, gold in QUESTIONS]
    return TableScorer(*pairs, *(pair[::-1] for pair in pairs))


def indexed(folder: Path, passages: Iterable[Passage], **options: float) -> Bm25Retriever:
    """BM25 over these passages."""
    build_bm25(passages, folder, **options)
    return Bm25Retriever(folder)


def write_index(folder: Path) -> Path:
    return indexed(folder / "bm25", PASSAGES.values()).folder


def write_questions(folder: Path, questions=QUESTIONS) -> Path:
    """The questions in HotpotQA's layout."""
    rows = [hotpot_row(id_, text, "ocean", gold, TEXTS.items()) | {"type": kind} for id_, text, kind, gold in questions]
    return Path(source(folder, json.dumps(rows), "questions.json"))
