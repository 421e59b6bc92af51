"""Preferences among the rewrites of a question: candidates with their rewards.

Standard library only.
"""

from dataclasses import dataclass


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
