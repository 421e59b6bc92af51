"""Reranking with RE-RAG's relevance estimator (Section 2.2) or any cross-encoder, for any retriever and system."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from common.ranges import PositiveInt, Precision
from common.records import Passage, Ranked, as_texts, nfkc
from harness.interfaces import Retriever
from harness.retrievers.rerank_prior import RerankPrior
from harness.runtime.loading import load

if TYPE_CHECKING:
    from models.cross_encoder import RelevanceEstimator

Relevance = Callable[["RelevanceEstimator", Sequence[str], Sequence[Sequence[Passage]]], list[list[float]]]
_PAIRS_AT_ONCE = 16_384  # tokenized and sorted by length together; bounds the memory


def relevance(
    estimator: "RelevanceEstimator", questions: Sequence[str], passages: Sequence[Sequence[Passage]]
) -> list[list[float]]:
    """Relevance logits, in nats, of each question's passages, in order; repeated pairs are scored once."""
    pairs = {
        (question, passage.id): passage for question, own in zip(questions, passages, strict=True) for passage in own
    }
    todo = iter(pairs.items())
    scores: dict[tuple[str, str], float] = {}
    while chunk := list(islice(todo, _PAIRS_AT_ONCE)):
        found = estimator.scores([(question, passage) for (question, _), passage in chunk])
        scores.update(zip((key for key, _ in chunk), found, strict=True))
    return [[scores[question, p.id] for p in own] for question, own in zip(questions, passages, strict=True)]


def shortened(estimator: "RelevanceEstimator", query: str) -> str:
    """The query, cut to half of the estimator's maximum input length, so that there is room for a passage.

    It is cut for short passages too: the scores of a query's passages are compared, so all of them are judged by the
    same text. Nor does the cut depend on the longest of them: a score is that of a query and a passage, whatever else
    was found with it.
    """
    from models.long_questions import first_tokens

    return first_tokens(estimator.encode.tokenizer, nfkc(query), estimator.encode.max_tokens // 2)


def judge_note(estimator: "RelevanceEstimator | None", query: str) -> str:
    """The part of a query that is read if `shortened` cuts it; else empty, also without an estimator."""
    if estimator is None or (read := shortened(estimator, query)) == nfkc(query):
        return ""
    from models.long_questions import question_note, token_count

    kept, whole = (token_count(estimator.encode.tokenizer, text) for text in (read, nfkc(query)))
    return question_note(kept, whole)


def rerank(
    estimator: "RelevanceEstimator",
    questions: Sequence[str],
    found: Sequence[Sequence[Ranked]],
    prior: RerankPrior | None = None,
    score: Relevance | None = None,
) -> list[list[Ranked]]:
    """Each question's candidates with their relevance logits, best first; ties keep their order.

    Args:
        estimator: Scores them.
        questions: The texts.
        found: The candidates of each, with the retriever's scores.
        prior: Makes their order count beside the logits.
        score: Takes the place of `relevance`: the memo's, in an evaluation.
    """
    passages = [[hit.passage for hit in hits] for hits in found]
    logits = (score or relevance)(estimator, questions, passages)
    return [ranked(*pair, prior) for pair in zip(found, logits, strict=True)]


def ranked(found: Sequence[Ranked], logits: Sequence[float], prior: RerankPrior | None) -> list[Ranked]:
    """A question's candidates by their logits, with a prior also by the order in which they were found; best first."""
    scores = prior(logits, [hit.score for hit in found]) if prior else logits
    made = [Ranked(hit.passage, score) for hit, score in zip(found, scores, strict=True)]
    return sorted(made, key=lambda hit: -hit.score)


class RerankedRetriever:
    """Reranks another retriever's candidates by relevance; scores are relevance logits, in nats.

    The estimator reads at most half of its input length of a query: DR-RAG's second-stage queries contain whole
    documents.

    Args:
        retriever: Retrieves the candidates.
        serving: Folder with an estimator that RE-RAG's training exported, e.g. checkpoints/rerag-nq/serving, or folder
            or hub id of a cross-encoder of transformers, e.g. BAAI/bge-reranker-base.
        candidates: Passages retrieved and scored per query; at least k.
        device: Of the estimator: auto, cpu or cuda.
        precision: Of the estimator: auto (bf16 where the device has it in hardware), fp32 or bf16.
        prior: File that `infer.py tune` fitted: the retriever's order counts beside the logits.

    Raises:
        UserError: If the device is not possible here.
        MissingInputError: If the serving folder or the file is missing.
        ArtifactError: If it is corrupt, of another kind or text format, or has no estimator.
    """

    def __init__(
        self,
        retriever: Retriever,
        serving: Path,
        candidates: PositiveInt = 100,
        device: str = "auto",
        precision: Precision = "auto",
        prior: Path | None = None,
    ) -> None:
        self.retriever, self.serving, self.candidates = retriever, serving, candidates
        self.prefix_depth = candidates  # up to here, a search for fewer passages finds the beginning of the list
        self.device, self.precision = device, precision
        self.prior = RerankPrior.of(prior, serving)

    def load(self) -> None:
        """Load the estimator and the retriever."""
        _ = self.estimator
        load(self.retriever)

    @cached_property
    def estimator(self) -> "RelevanceEstimator":
        """Scores the candidates."""
        from models.cross_encoder import load_scorer

        return load_scorer(self.serving, self.device, self.precision)

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that the estimator reads if it is too long; else empty."""
        return judge_note(self.__dict__.get("estimator"), question)  # not loaded for a note

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k most relevant of each query's candidates, best first; ties in the retriever's order."""
        queries = as_texts(queries)
        if not queries:
            return []
        found = self.retriever.search(queries, max(k, self.candidates))
        truncated = [shortened(self.estimator, query) for query in queries]
        return [hits[:k] for hits in rerank(self.estimator, truncated, found, self.prior)]
