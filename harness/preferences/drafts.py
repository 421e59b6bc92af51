"""Candidate rewrites that have no reward yet: greedy ones of any rewriter, samples of a trained one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from common.errors import UserError
from common.preferences import Candidate, RewritePreferences
from common.records import Question, Ranked, clean
from common.rewrites import Rewrites
from harness.interfaces import FeedbackRewriter, Rewriter
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewrite_outputs import SEPARATOR

Found = Sequence[Sequence[Ranked]]  # what the first search found for each question, best first
FAILED = "the call of the language model failed"
_DECIMALS = 6  # of rewards and log-probabilities: the last bits depend on the batch


@dataclass(frozen=True, slots=True)
class Drafts:
    """The candidates of one question (and strategy)."""

    place: int  # of the question in its batch
    row: RewritePreferences  # with rewards of 0
    queries: tuple[tuple[str, ...], ...]  # of each candidate; the question itself where it makes none

    def rewarded(self, question_reward: float, rewards: Sequence[float]) -> RewritePreferences:
        """The row with the rewards of the question and of every candidate."""
        rounded = [round(reward, _DECIMALS) for reward in rewards]
        candidates = tuple(replace(c, reward=r) for c, r in zip(self.row.candidates, rounded, strict=True))
        return replace(self.row, question_reward=round(question_reward, _DECIMALS), candidates=candidates)


class Drafter(Protocol):
    """Makes the candidates of questions."""

    @property
    def facts(self) -> dict[str, Any]:
        """For the manifest: how they are sampled."""

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """The candidates, in order, and how many questions (and strategies) have none, by reason."""


def drafter(rewriter: Rewriter, strategies: Sequence[str], samples: int, temperature: float, seed: int) -> Drafter:
    """What makes the candidates.

    Args:
        rewriter: The rewriter.
        strategies: Of the rewriter.
        samples: Per question (and strategy); 0: only the greedy rewrite.
        temperature: Of the samples.
        seed: Of the samples.

    Raises:
        UserError: If the rewriter cannot sample.
    """
    if not samples:
        return Greedy(rewriter, strategies)
    if isinstance(rewriter, TrainedRewriter):
        return Samples(rewriter, strategies, samples, temperature, seed)
    raise UserError(
        f"{rewriter.name} cannot be sampled: type --samples 0 for its one rewrite, or give a TrainedRewriter."
    )


@dataclass(frozen=True)
class Greedy:
    """The one rewrite that a rewriter makes by each strategy; a strategy that falls back has the question itself."""

    rewriter: Rewriter | FeedbackRewriter
    strategies: Sequence[str]

    @property
    def facts(self) -> dict[str, Any]:
        """See `Drafter`."""
        return {}

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """See `Drafter`.  Questions whose call failed are left out."""
        if isinstance(self.rewriter, FeedbackRewriter):
            made = self.rewriter.rewrite(questions, self.strategies, found)
        else:
            made = self.rewriter.rewrite(questions, self.strategies)
        drafts, skipped = [], Counter[str]()
        for place, (question, rewrites) in enumerate(zip(questions, made, strict=True)):
            if _failed(rewrites):
                skipped[FAILED] += 1
                continue
            for strategy, queries in rewrites.queries.items():
                candidate = Candidate(SEPARATOR.join(queries), 0.0, None, 0, True)
                drafts.append(_drafts(place, question, strategy, [candidate], [queries]))
        return drafts, skipped


def _failed(rewrites: Rewrites) -> bool:
    return bool(rewrites.fallbacks and rewrites.costs.get("failed_calls"))


def _drafts(
    place: int,
    question: Question,
    strategy: str,
    candidates: Sequence[Candidate],
    queries: Sequence[tuple[str, ...]],
) -> Drafts:
    row = RewritePreferences(question.id, clean(question.text), strategy, 0.0, tuple(candidates), question.history)
    return Drafts(place, row, tuple(queries))


@dataclass(frozen=True)
class Samples:
    """Samples of a generative rewriter, by strategy."""

    rewriter: TrainedRewriter
    strategies: Sequence[str]
    samples: int
    temperature: float
    seed: int

    @property
    def facts(self) -> dict[str, Any]:
        """See `Drafter`."""
        return {"temperature": self.temperature}

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """See `Drafter`."""
        made = self.rewriter.sample(questions, self.strategies, self.samples, self.temperature, self.seed)
        drafts, skipped = [], Counter[str]()
        for place, (question, by_strategy) in enumerate(zip(questions, made, strict=True)):
            for strategy, sampled in by_strategy.items():
                if isinstance(sampled, str):
                    skipped[sampled] += 1
                    continue
                candidates = [
                    Candidate(each.rewrite, 0.0, round(each.log_probability, _DECIMALS), each.times, each.greedy)
                    for each in sampled
                ]
                queries = [each.queries or (clean(question.text),) for each in sampled]
                drafts.append(_drafts(place, question, strategy, candidates, queries))
        return drafts, skipped
