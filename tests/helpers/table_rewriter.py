"""Rewrites and ranked lists that are written down, and a retriever that counts its calls."""

from collections.abc import Mapping, Sequence

from common.records import Passage, Question, Ranked
from common.rewrites import Rewrites
from harness.interfaces import Retriever
from harness.rewriters.fallbacks import with_fallbacks


class TableRewriter:
    """Rewrites by question text and strategy; a strategy without one falls back.

    Args:
        table: Question -> strategy -> queries.
        reason: For the choice.
    """

    name = "table"

    def __init__(self, table: Mapping[str, Mapping[str, Sequence[str]]], reason: str = "") -> None:
        self.table, self.reason = table, reason
        self.asked: list[list[str]] = []  # texts, by call

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """One record per question."""
        self.asked.append([each.text for each in questions])
        costs = {"model_calls": 1.0, "tokens": 7.0, "reply_tokens": 3.0}
        made = [{name: tuple(q) for name, q in self.table.get(each.text, {}).items()} for each in questions]
        pairs = zip(questions, made, strict=True)
        return [with_fallbacks(q.text, strategies, own, "it is missing", self.reason, costs) for q, own in pairs]


class TableRetriever:
    """Ranked lists by query, with the scores 3, 2, 1, ...; an unknown query finds nothing.

    Args:
        lists: Query -> passages.
    """

    def __init__(self, lists: Mapping[str, Sequence[Passage]]) -> None:
        self.lists = lists
        self.asked: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The first k of each list."""
        self.asked.append((list(queries), k))
        found = [self.lists.get(query, ())[:k] for query in queries]
        return [[Ranked(each, 3.0 - place) for place, each in enumerate(hits)] for hits in found]


class CountingRetriever:
    """A retriever around another one that keeps what it was asked."""

    def __init__(self, inner: Retriever) -> None:
        self.retriever = inner
        self.asked: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """As the other one."""
        self.asked.append((list(queries), k))
        return self.retriever.search(queries, k)


class WorstFirst:
    """A retriever that finds what another one finds, worst first."""

    def __init__(self, inner: Retriever) -> None:
        self.retriever = inner

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The other one's k passages."""
        return [hits[::-1] for hits in self.retriever.search(queries, k)]


class CountingEstimator:
    """A real estimator that counts the pairs of each call."""

    def __init__(self, inner):
        self.inner, self.encode, self.asked = inner, inner.encode, []

    def scores(self, pairs):
        """Relevance logits of the pairs."""
        self.asked.append(list(pairs))
        return self.inner.scores(pairs)
