"""Records of query rewriting: a training example, and the queries that a rewriter makes of a question.

Standard library only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class RewriteExample:
    """A question with its rewrite by one strategy, to learn from."""

    question: str
    strategy: str
    rewrite: str  # as the file has it; several queries are separated by semicolons
    history: tuple[str, ...] = ()  # earlier turns of the dialogue, oldest first


@dataclass(frozen=True, slots=True)
class Rewrites:
    """What a rewriter made of one question."""

    queries: dict[str, tuple[str, ...]]  # strategy -> its queries, at least one each; most strategies make one
    fallbacks: dict[str, str] = field(default_factory=dict)  # strategy whose query is the question itself -> why
    reason: str = ""  # for the choice of the strategies, where the rewriter has chosen
    costs: dict[str, float] = field(default_factory=dict)  # as in `Answer.costs`
    share: float = 1.0  # of the rewriter's work that was necessary: see `restricted`

    def distinct(self, question: str) -> tuple[str, ...]:
        """The question, then every query that differs from those before it: q' of DMQR-RAG, Eq. 2."""
        return tuple(dict.fromkeys([question, *(query for queries in self.queries.values() for query in queries)]))


def restricted(rewrites: Rewrites, strategies: Sequence[str]) -> Rewrites:
    """The rewrites by some of the strategies.

    A rewriter that makes one call per strategy is charged for these calls only; one that makes all rewrites in one call
    in full.
    """
    if all(name in strategies for name in rewrites.queries):
        return rewrites
    queries = {name: rewrites.queries[name] for name in strategies if name in rewrites.queries}
    fallbacks = {name: rewrites.fallbacks[name] for name in strategies if name in rewrites.fallbacks}
    calls = rewrites.costs.get("model_calls", 0.0)
    share = len(queries) / len(rewrites.queries) if calls >= len(rewrites.queries) else 1.0
    costs = {name: cost * share for name, cost in rewrites.costs.items() if name != "fallbacks"}
    costs |= {"fallbacks": float(len(fallbacks))} if fallbacks else {}
    return replace(rewrites, queries=queries, fallbacks=fallbacks, costs=costs, share=share)
