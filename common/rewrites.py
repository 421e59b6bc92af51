"""Records of query rewriting: a training example, and the queries that a rewriter makes of a question.

Standard library only.
"""

from dataclasses import dataclass, field


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

    def distinct(self, question: str) -> tuple[str, ...]:
        """The question, then every query that differs from those before it: q' of DMQR-RAG, Eq. 2."""
        return tuple(dict.fromkeys([question, *(query for queries in self.queries.values() for query in queries)]))
