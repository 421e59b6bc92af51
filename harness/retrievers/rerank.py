"""RE-RAG's relevance estimator as a reranker that any strategy can put behind any retriever (RE-RAG, Section 2.2)."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import UserError
from common.records import Passage, Ranked, clean
from harness.interfaces import Retriever

if TYPE_CHECKING:
    from models.rerag.estimator import RelevanceEstimator

_PAIRS_AT_ONCE = 16_384  # encoded together: enough to sort by length, few enough to hold in memory


def relevance(
    estimator: "RelevanceEstimator", questions: Sequence[str], passages: Sequence[Sequence[Passage]]
) -> list[list[float]]:
    """Relevance logits, in nats, of each question's passages, in their order; a pair that repeats is scored once.

    Raises:
        UserError: If a question leaves its passages no room in the estimator's input.
    """
    pairs = {
        (question, passage.id): passage for question, own in zip(questions, passages, strict=True) for passage in own
    }
    todo = iter(pairs.items())
    scores: dict[tuple[str, str], float] = {}
    while chunk := list(islice(todo, _PAIRS_AT_ONCE)):
        found = estimator.scores([(question, passage) for (question, _), passage in chunk])
        scores.update(zip((key for key, _ in chunk), found, strict=True))
    return [[scores[question, p.id] for p in own] for question, own in zip(questions, passages, strict=True)]


def rerank(
    estimator: "RelevanceEstimator", questions: Sequence[str], passages: Sequence[Sequence[Passage]]
) -> list[list[Ranked]]:
    """Each question's passages with their relevance logits, best first, equal ones in the order given."""
    return [
        sorted(map(Ranked, own, scores), key=lambda hit: -hit.score)
        for own, scores in zip(passages, relevance(estimator, questions, passages), strict=True)
    ]


class RerankedRetriever:
    """Finds candidates with another retriever and puts the most relevant first; scores are relevance logits, in nats.

    A query longer than half of the estimator's input is judged by its beginning: DR-RAG's second stage searches with
    whole documents behind the question.

    Args:
        retriever: Finds the candidates.
        serving: Folder with an estimator that RE-RAG's training exported, e.g. checkpoints/rerag-nq/serving.
        candidates: Passages asked of the retriever and scored, per query; at least k in any case.
        device: Of the estimator: auto, cpu or cuda.

    Raises:
        UserError: If `candidates` is below 1 or the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or holds no estimator.
    """

    def __init__(self, retriever: Retriever, serving: Path, candidates: int = 100, device: str = "auto") -> None:
        if candidates < 1:
            raise UserError(f"candidates must be at least 1, got {candidates}.")
        from models.rerag.model import ESTIMATOR, ReRagModel

        model = ReRagModel.load(Path(serving), device, needs=(ESTIMATOR,))
        assert model.estimator is not None  # asked for above
        self.retriever, self.candidates, self.estimator = retriever, candidates, model.estimator

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k most relevant of each query's candidates, best first, equal ones in the retriever's order.

        Raises:
            UserError: If k is below 1.
        """
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}.")
        if not queries:
            return []
        found = self.retriever.search(queries, max(k, self.candidates))
        judged = [self._judged(query) for query in queries]
        ranked = rerank(self.estimator, judged, [[hit.passage for hit in hits] for hits in found])
        return [hits[:k] for hits in ranked]

    def _judged(self, query: str) -> str:
        """What the estimator reads of a query: all, or as much of its beginning as fills half of the input."""
        query, room = clean(query), self.estimator.encode.max_tokens // 2
        if len(query.encode()) <= room:  # no token is shorter than a byte
            return query
        tokenizer = self.estimator.encode.tokenizer
        ends = tokenizer(query, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return query if len(ends) <= room else query[: ends[room - 1][1]]
