"""Rankings of all segments of an index by one retriever, scored.

Of the whole collection, of collections of fewer documents, and as far as they fit a context.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from common.progress import track_batches
from common.records import Passage, Question
from common.retrieval import without_copies, without_itself
from harness.evaluation.log_rank import log_rank_index
from harness.evaluation.retrieval_scores import by_document, gold_places, holders_of
from harness.interfaces import Retriever
from harness.retrievers.corpora import passages_of
from harness.systems.hiqa import fitting, shown_words

RANKED_AT_ONCE = 200_000  # passages of the rankings that are held in memory: those of a few questions, or of one
WHOLE, RECALL, ALL_GOLD, LOG_RANK = "whole index", "recall", "all gold", "Log-Rank"


Scores = Mapping[str, float]  # of one question, by measure, 0 to 1


def document_of(passage: Passage) -> str:
    """Name of the document that a passage is of; empty for another passage."""
    return str((passage.metadata or {}).get("document", ""))


def segments_by_document(retriever: Retriever) -> Counter[str]:
    """Number of passages of each document that the retriever ranks."""
    return Counter(map(document_of, passages_of(retriever) or ()))


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


def rank_all(
    retriever: Retriever,
    questions: Sequence[Question],
    what: str,
    k: int,
    gamma: float,
    sizes: Mapping[str, int],
    seed: int,
    budgets: Mapping[str, int],
) -> dict[str, list[Scores]]:
    """The scores of each question's ranking, by column: `WHOLE`, those of the sizes, those of the budgets.

    Args:
        retriever: Ranks its whole index.
        questions: With gold segments.
        what: Name for the progress line.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        sizes: Numbers of documents by column.  The ranking of a smaller collection is the whole one without the other
            documents.
        seed: Of the draw of the documents.
        budgets: Words by column of the context that is filled with the ranking, as the system fills it (`fitting`).
    """
    passages, segments = passages_of(retriever) or (), segments_by_document(retriever)
    of_document, documents, at_once = by_document(passages), sorted(segments), max(1, RANKED_AT_ONCE // len(passages))
    words_of = {passage.id: shown_words(passage) for passage in passages} if budgets else {}
    found: dict[str, list[Scores]] = {column: [] for column in (WHOLE, *sizes, *budgets)}
    batches = [questions[start : start + at_once] for start in range(0, len(questions), at_once)]
    for batch in track_batches(batches, len(questions), f"ranking, {what}"):
        searched = retriever.search([question.text for question in batch], len(passages))
        for question, hits in zip(batch, searched, strict=True):
            ranking, holders = without_itself(question, hits), holders_of(question, of_document)
            ranked = [hit.passage for hit in ranking]
            found[WHOLE].append(_scores(gold_places(question, ranked, holders)[0], len(passages), k, gamma))
            for column, size in sizes.items():
                kept = kept_documents(question, documents, size, seed)
                own = [passage for passage in ranked if document_of(passage) in kept]
                count = max(1, sum(segments[name] for name in kept))  # a gold document may be missing from the index
                found[column].append(_scores(gold_places(question, own, holders)[0], count, k, gamma))
            distinct = without_copies(ranking) if budgets else []  # as the system fills its context
            words = [words_of[hit.passage.id] for hit in distinct]
            for column, budget in budgets.items():
                context = [distinct[place].passage for place in fitting(words, budget)]
                found[column].append(_scores(gold_places(question, context)[0], len(context), k, gamma))
    return found


def _scores(places: Sequence[int | None], segments: int, k: int, gamma: float) -> Scores:
    """Of one question, from the places, from 1, of its gold segments among so many; None for one that is not there."""
    found = [place for place in places if place]
    first = sum(place <= k for place in found)
    return {
        f"hit@{k}": float(first > 0),
        f"recall@{k}": first / len(places),
        "MRR": 1 / min(found) if found else 0.0,
        LOG_RANK: log_rank_index(places, segments, gamma),
        RECALL: len(found) / len(places),
        ALL_GOLD: float(len(found) == len(places)),
    }
