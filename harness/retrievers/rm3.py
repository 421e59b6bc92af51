"""Query expansion by pseudo-relevance feedback, RM3 (Lavrenko and Croft 2001, Abdul-Jaleel et al. 2004): no model.

The first passages of a search are taken as relevant. With f(w, d) the frequency of word w in passage d, and |d| its
number of words:

    P(w | R) = sum over the feedback passages d of  P(d) * f(w, d) / |d|,     P(d) = score(d) / sum of the scores
    P'(w)    = lambda * f(w, q) / |q| + (1 - lambda) * P(w | R)
               over the most probable words of R, renormalized

The second search weighs words by P' (BM25), or has the new words appended to the question (any other retriever).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from common.errors import UserError
from common.ranges import PositiveInt, PositiveShare, Share
from common.records import Ranked, as_texts
from harness.indexing.passage_store import indexed_text
from harness.interfaces import Retriever
from harness.retrievers.corpora import check_same_corpus
from harness.runtime.loading import load

_SHORTEST = 2  # characters of an expansion word


def relevance_model(
    documents: Sequence[Sequence[str]], scores: Sequence[float], terms: int, excluded: Collection[str] = ()
) -> dict[str, float]:
    """P(w | R) of the `terms` most probable words, renormalized to 1, most probable first, ties in alphabetical order.

    Args:
        documents: Words of each feedback passage.
        scores: Retrieval scores of the passages; those below 0 count as 0, and equal ones if all are 0.
        terms: Number of words.
        excluded: Words that cannot be chosen.
    """
    weights = [max(0.0, score) for score in scores]
    weights = weights if any(weights) else [1.0] * len(weights)
    mass: dict[str, float] = {}
    for words, weight in zip(documents, weights, strict=True):
        for word, count in Counter(words).items():
            mass[word] = mass.get(word, 0.0) + weight / sum(weights) * count / len(words)
    allowed = [(word, value) for word, value in mass.items() if word not in excluded and value > 0]
    kept = sorted(allowed, key=lambda pair: (-pair[1], pair[0]))[:terms]
    total = sum(value for _, value in kept)
    return {word: value / total for word, value in kept}


def interpolated(query: Sequence[str], model: Mapping[str, float], original_weight: float) -> dict[str, float]:
    """P'(w): the query's own words mixed with the relevance model; without either, the other alone.

    Args:
        query: Words of the query; repeated words count repeatedly.
        model: From `relevance_model`.
        original_weight: lambda.
    """
    own = {word: count / len(query) for word, count in Counter(query).items()}
    if not own or not model:
        return own or dict(model)
    words = [*own, *(word for word in model if word not in own)]
    return {word: original_weight * own.get(word, 0.0) + (1 - original_weight) * model.get(word, 0.0) for word in words}


class Rm3Retriever:
    """Searches with queries that RM3 expands.

    A passage's score is the second search's.  Two batched searches; a query that finds nothing is not expanded.

    Args:
        retriever: Makes the second search: with weighted words if it is a BM25 retriever, else with the new words after
            the question.
        feedback_retriever: A BM25 retriever that finds the feedback passages; `retriever` itself when None, which then
            must be one.
        passages: Number of feedback passages.
        terms: Number of words of the relevance model.
        original_weight: lambda, the weight of the question's own words.
        common: Words in more than this share of the corpus are not chosen, as in Anserini; 1 allows all.

    Raises:
        UserError: If no BM25 retriever is given.
        ArtifactError: If the two search indexes of different corpora.
    """

    def __init__(
        self,
        retriever: Retriever,
        feedback_retriever: Retriever | None = None,
        passages: PositiveInt = 10,
        terms: PositiveInt = 10,
        original_weight: Share = 0.5,
        common: PositiveShare = 0.1,
    ) -> None:
        self.retriever, self.feedback_retriever = retriever, feedback_retriever or retriever
        if not hasattr(self.feedback_retriever, "shares"):
            name = "feedback_retriever" if feedback_retriever is not None else "retriever"
            raise UserError(
                f"{name} is {type(self.feedback_retriever).__name__}, but the feedback passages come from BM25: set "
                "feedback_retriever to harness.retrievers.bm25.Bm25Retriever with its index."
            )
        self.passages, self.terms = passages, terms
        self.original_weight, self.common = original_weight, common

    def load(self) -> None:
        """Load both retrievers, and check that they search one corpus."""
        load(self.retriever, self.feedback_retriever)
        check_same_corpus([self.retriever, self.feedback_retriever])

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each expanded query, best first."""
        queries = as_texts(queries)
        self.load()
        expanded = self.expanded(queries)
        if hasattr(self.retriever, "search_weighted"):
            found: list[list[Ranked]] = self.retriever.search_weighted(expanded, k)
            return found
        words = self.feedback_retriever.words  # type: ignore[attr-defined]  # checked in __init__
        texts = []
        for query, weights in zip(queries, expanded, strict=True):
            own = set(words(query))
            added = sorted((word for word in weights if word not in own), key=lambda word: -weights[word])
            texts.append(" ".join([query, *added]))
        return self.retriever.search(texts, k)

    def expanded(self, queries: Sequence[str]) -> list[dict[str, float]]:
        """P' of the words of each query."""
        queries = as_texts(queries)
        words, shares = self.feedback_retriever.words, self.feedback_retriever.shares  # type: ignore[attr-defined]  # checked
        result = []
        feedback = self.feedback_retriever.search(queries, self.passages) if queries else []
        for query, hits in zip(queries, feedback, strict=True):
            documents = [words(indexed_text(hit.passage)) for hit in hits]
            found = sorted({word for document in documents for word in document})
            excluded = {
                word
                for word, share in zip(found, shares(found), strict=True)
                if share > self.common or len(word) < _SHORTEST
            }
            model = relevance_model(documents, [hit.score for hit in hits], self.terms, excluded)
            result.append(interpolated(words(query), model, self.original_weight))
        return result
