"""Preferences among the rewrites of a question: candidates with their rewards.

Standard library only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from common.records import Question, Ranked


@dataclass(frozen=True, slots=True)
class Candidate:
    """One rewrite of a question, and how well it retrieves."""

    rewrite: str  # as it was written; several queries are separated by semicolons
    reward: float
    log_probability: float | None = (
        None  # nats, of the rewrite and its end, by the model that wrote it; None if it gives none
    )
    times: int = 1  # how often it was sampled; 0 for a greedy one that was never sampled
    greedy: bool = False  # whether it is the most probable rewrite, as it would be used


@dataclass(frozen=True, slots=True)
class RewritePreferences:
    """Candidate rewrites of one question by one strategy, each once."""

    question_id: str
    question: str
    strategy: str
    question_reward: float  # of the question itself, without a rewrite
    candidates: tuple[Candidate, ...]
    history: tuple[str, ...] = ()  # earlier turns of the dialogue, oldest first


@runtime_checkable
class Reward(Protocol):
    """How good the rewrites of a question are; the classes are in `harness/preferences`."""

    @property
    def depth(self) -> int:
        """Passages that it looks at; 0 if it needs no search."""

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it, JSON types only."""

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question, such as "no gold passage"; None where it is."""

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, in order.

        Args:
            questions: One per row, with what the reward needs: gold passages, answers.
            queries: Of each row's rewrite, at least one.
            found: The best `depth` passages of each row, best first; empty lists if `depth` is 0.
        """
