"""Rankings of all segments of an index by one retriever, scored: of the whole collection, and of collections of fewer documents.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence, Set
from random import Random

import numpy as np
from numpy.typing import NDArray

from common.progress import track
from common.records import Passage, Question
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.indexing.passage_store import PassageStore
from harness.interfaces import Retriever
from harness.retrievers.corpora import indexes_of

QUESTIONS_AT_ONCE = 16  # their rankings of the whole index are held in memory

Scores = dict[str, NDArray[np.float64]]


def document_of(passage: Passage) -> str:
    """Name of the document that a passage is of; empty for another passage."""
    return str((passage.metadata or {}).get("document", ""))


def segments_by_document(retriever: Retriever) -> dict[str, int]:
    """Number of segments of each document of the retriever's index."""
    counts: dict[str, int] = {}
    for passage in PassageStore(indexes_of(retriever)[0].folder):
        name = document_of(passage)
        counts[name] = counts.get(name, 0) + 1
    return counts


def kept_documents(question: Question, documents: Sequence[str], size: int, seed: int) -> frozenset[str]:
    """A collection of `size` documents for a question: those of its gold segments, and others drawn at random.

    Collections of one question and seed contain each other.

    Args:
        question: One with gold segments.
        documents: All documents, in a fixed order.
        size: At least the number of gold documents are kept.
        seed: Of the draw.
    """
    gold = {each.document for each in question.gold_segments}
    others = [name for name in documents if name not in gold]
    Random(f"{seed}/{question.id}").shuffle(others)
    return frozenset([*gold, *others[: max(0, size - len(gold))]])


def ranked_scores(
    retriever: Retriever,
    questions: Sequence[Question],
    segments: Mapping[str, int],
    k: int,
    gamma: float,
    what: str,
    sizes: Sequence[int] = (),
    seed: int = 0,
) -> tuple[Scores, dict[int, Scores]]:
    """Scores of the rankings of all segments, and by size of the collection.

    Args:
        retriever: Ranks its whole index.
        questions: With gold segments.
        segments: Of each document; see `segments_by_document`.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        what: Name for the progress line.
        sizes: Numbers of documents.  The ranking of a smaller collection is the whole one without the other documents.
        seed: Of the draw of the documents.

    Returns:
        (N,) by name as in `retrieval_scores`, and the same by size.
    """
    documents, count = sorted(segments), sum(segments.values())
    found: list[Scores] = []
    smaller: dict[int, list[Scores]] = {size: [] for size in sizes}
    batches = [questions[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(questions), QUESTIONS_AT_ONCE)]
    for batch in track(batches, len(batches), f"ranking, {what}"):
        rankings = retriever.search([question.text for question in batch], count)
        found.append(retrieval_scores(batch, rankings, (k,), indexed=count, gamma=gamma))
        for size, scores in smaller.items():
            for question, ranking in zip(batch, rankings, strict=True):
                kept = kept_documents(question, documents, size, seed)
                hits = [hit for hit in ranking if document_of(hit.passage) in kept]
                scores.append(retrieval_scores([question], [hits], (k,), indexed=_count(segments, kept), gamma=gamma))
    return _joined(found), {size: _joined(scores) for size, scores in smaller.items()}


def _count(segments: Mapping[str, int], kept: Set[str]) -> int:
    return max(1, sum(segments.get(name, 0) for name in kept))  # a gold document may be missing from the index


def _joined(parts: Sequence[Scores]) -> Scores:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
