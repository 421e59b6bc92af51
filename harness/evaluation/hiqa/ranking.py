"""Rankings of all segments of an index by one retriever, scored.

Of the whole collection, of collections of fewer documents, and as far as they fit a context.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from common.progress import track_batches
from common.records import Passage, Question
from common.retrieval import without_copies, without_itself
from harness.evaluation.retrieval_scores import by_document, gold_places, holders_of, retrieval_scores
from harness.interfaces import Retriever
from harness.retrievers.corpora import passages_of
from harness.systems.hiqa import fitting, shown_words

RANKED_AT_ONCE = 200_000  # passages of the rankings that are held in memory: those of a few questions, or of one
RECALL, WHOLE = "recall", "all gold"  # of a context of so many words

Scores = dict[str, NDArray[np.float64]]
Ranks = list[int | None]


@dataclass(frozen=True, slots=True)
class HiQaRow:
    """How one retriever ranks the segments of its index.  Scores are (N,) by name."""

    segments: int  # of the index
    scores: Scores  # as in `retrieval_scores`
    by_size: Mapping[int, Scores]  # by number of documents
    by_budget: Mapping[int, Scores]  # by words of the context: RECALL, WHOLE


def document_of(passage: Passage) -> str:
    """Name of the document that a passage is of; empty for another passage."""
    return str((passage.metadata or {}).get("document", ""))


def segments_by_document(retriever: Retriever) -> dict[str, int]:
    """Number of passages of each document that the retriever ranks."""
    counts: dict[str, int] = {}
    for passage in passages_of(retriever) or ():
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


def at_once(questions: Sequence[Question], count: int) -> list[Sequence[Question]]:
    """The questions in batches whose rankings of `count` passages each are held in memory together."""
    size = max(1, RANKED_AT_ONCE // count)
    return [questions[start : start + size] for start in range(0, len(questions), size)]


def rank_all(
    retriever: Retriever,
    questions: Sequence[Question],
    segments: Mapping[str, int],
    k: int,
    gamma: float,
    what: str,
    sizes: Sequence[int] = (),
    seed: int = 0,
    budgets: Sequence[int] = (),
) -> HiQaRow:
    """The rankings of all segments, scored.

    Args:
        retriever: Ranks its whole index.
        questions: With gold segments.
        segments: Of each document; see `segments_by_document`.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        what: Name for the progress line.
        sizes: Numbers of documents.  The ranking of a smaller collection is the whole one without the other documents.
        seed: Of the draw of the documents.
        budgets: Words of the context that is filled with the ranking, as the system fills it (`fitting`).
    """
    documents, count = sorted(segments), sum(segments.values())
    passages = passages_of(retriever) or ()
    of_document = by_document(passages)
    words_of = {passage.id: shown_words(passage) for passage in passages} if budgets else {}
    found: list[Scores] = []
    smaller: dict[int, list[Scores]] = {size: [] for size in sizes}
    shown: dict[int, list[Scores]] = {budget: [] for budget in budgets}
    for batch in track_batches(at_once(questions, count), len(questions), f"ranking, {what}"):
        searched = retriever.search([question.text for question in batch], count)
        rankings = [without_itself(*each) for each in zip(batch, searched, strict=True)]
        holders = [holders_of(question, of_document) for question in batch]
        found.append(retrieval_scores(batch, rankings, (k,), indexed=count, gamma=gamma, holders=holders))
        for question, ranking, held in zip(batch, rankings, holders, strict=True):
            distinct = without_copies(ranking) if budgets else []  # as the system fills its context
            words = [words_of[hit.passage.id] for hit in distinct]
            for budget, within in shown.items():
                context = [distinct[place].passage for place in fitting(words, budget)]
                within.append(_of_context(gold_places(question, context)[0]))
            for size, scores in smaller.items():
                kept = kept_documents(question, documents, size, seed)
                hits = [hit for hit in ranking if document_of(hit.passage) in kept]
                indexed = _count(segments, kept)
                scores.append(retrieval_scores([question], [hits], (k,), indexed=indexed, gamma=gamma, holders=[held]))
    by_size, by_budget = ({key: _joined(parts) for key, parts in each.items()} for each in (smaller, shown))
    return HiQaRow(count, _joined(found), by_size, by_budget)


def _of_context(places: Ranks) -> Scores:
    """The scores of one question's context, from the places of its gold segments in it."""
    held = sum(place is not None for place in places) / len(places)
    values = {RECALL: held, WHOLE: float(held == 1)}
    return {name: np.array([value]) for name, value in values.items()}


def _count(segments: Mapping[str, int], kept: Set[str]) -> int:
    return max(1, sum(segments.get(name, 0) for name in kept))  # a gold document may be missing from the index


def _joined(parts: Sequence[Scores]) -> Scores:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
