"""Candidate rewrites that have no reward yet: greedy ones of any rewriter, and samples of the trained ones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from common.errors import UserError
from common.feedback import Candidate, RewriteFeedback, WordCandidate, WordFeedback
from common.records import Question, Ranked, clean
from common.rewrites import Rewrites
from harness.interfaces import FeedbackRewriter, Rewriter
from harness.rewriters.extractive import ExtractiveRewriter
from models.dmqr.strategies import SEPARATOR

Found = Sequence[Sequence[Ranked]]  # what the first search found for each question, best first
Row = RewriteFeedback | WordFeedback
FAILED = "the call of the language model failed"
_DECIMALS = 6  # of rewards and log-probabilities: the last bits depend on the batch


@dataclass(frozen=True, slots=True)
class Drafts:
    """The candidates of one question (and strategy)."""

    place: int  # of the question in its batch
    row: Row  # with rewards of 0
    queries: tuple[tuple[str, ...], ...]  # of each candidate; the question itself where it makes none

    def rewarded(self, question_reward: float, rewards: Sequence[float]) -> Row:
        """The row with the rewards of the question and of every candidate."""
        candidates = tuple(
            replace(each, reward=round(reward, _DECIMALS))
            for each, reward in zip(self.row.candidates, rewards, strict=True)
        )
        return replace(self.row, question_reward=round(question_reward, _DECIMALS), candidates=candidates)


class Drafter(Protocol):
    """Makes the candidates of questions."""

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """The candidates, in order, and how many questions (and strategies) have none, by reason."""


def drafter(
    rewriter: Rewriter, strategies: Sequence[str], samples: int, temperature: float, seed: int
) -> tuple[Drafter, dict[str, Any] | None]:
    """What makes the candidates, and the policy for the manifest, if they are choices of words.

    Args:
        rewriter: The rewriter.
        strategies: Of the rewriter.
        samples: Per question (and strategy); 0: only the greedy rewrite.
        temperature: Of the samples.
        seed: Of the samples.

    Raises:
        UserError: If the rewriter cannot sample, or samples with other options.
    """
    if not samples:
        return Greedy(rewriter, strategies), None
    if isinstance(rewriter, ExtractiveRewriter):
        policy = rewriter.policy(strategies, temperature)
        return WordSamples(rewriter, strategies, samples, temperature, seed), policy.facts
    raise UserError(
        f"{rewriter.name} cannot be sampled: type --samples 0 for its one rewrite, or give an ExtractiveRewriter or a TrainedRewriter."
    )


@dataclass(frozen=True)
class Greedy:
    """The one rewrite that a rewriter makes by each strategy; a strategy that falls back has the question itself."""

    rewriter: Rewriter | FeedbackRewriter
    strategies: Sequence[str]

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
    row = RewriteFeedback(question.id, clean(question.text), strategy, 0.0, tuple(candidates), question.history)
    return Drafts(place, row, tuple(queries))


@dataclass(frozen=True)
class WordSamples:
    """Samples of an extractive rewriter's policy."""

    rewriter: ExtractiveRewriter
    strategies: Sequence[str]
    samples: int
    temperature: float
    seed: int

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """See `Drafter`."""
        made = self.rewriter.sample(questions, self.strategies, found, self.samples, self.temperature, self.seed)
        drafts, skipped = [], Counter[str]()
        for place, (question, each) in enumerate(zip(questions, made, strict=True)):
            if not each.choices:
                skipped[each.reason] += 1
                continue
            candidates = [
                WordCandidate(
                    choice.left_out,
                    choice.joins,
                    0.0,
                    round(choice.log_probability, _DECIMALS),
                    choice.times,
                    choice.greedy,
                )
                for choice in each.choices
            ]
            queries = tuple(choice.queries or (clean(question.text),) for choice in each.choices)
            row = WordFeedback(question.id, each.question, each.passages, 0.0, tuple(candidates))
            drafts.append(Drafts(place, row, queries))
        return drafts, skipped
