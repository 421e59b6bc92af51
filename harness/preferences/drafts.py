"""Candidate rewrites that have no reward yet: greedy ones of any rewriter, samples of a trained one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.errors import UserError
from common.preferences import Candidate, RewritePreferences
from common.records import Question, Ranked, clean
from harness.interfaces import FeedbackRewriter, Rewriter
from harness.rewriters.fallbacks import call_failed
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


@dataclass(frozen=True)
class Drafter:
    """Makes the candidates of questions by each strategy: the rewrite that would be used, or samples.

    A strategy that falls back has the question itself; questions whose call failed are left out.

    Args:
        rewriter: Any rewriter; a trained one for samples.
        strategies: Of the rewriter.
        samples: Per question (and strategy); 0: only the greedy rewrite.
        temperature: Of the samples.
        seed: Of the samples.

    Raises:
        UserError: If the rewriter cannot sample.
    """

    rewriter: Rewriter | FeedbackRewriter
    strategies: Sequence[str]
    samples: int = 0
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples and not isinstance(self.rewriter, TrainedRewriter):
            raise UserError(
                f"{self.rewriter.name} cannot be sampled: type --samples 0 for its one rewrite, or give a "
                "TrainedRewriter."
            )

    @property
    def facts(self) -> dict[str, Any]:
        """For the manifest: how they are sampled."""
        return {"temperature": self.temperature} if self.samples else {}

    def __call__(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        """The candidates, in order, and how many questions (and strategies) have none, by reason."""
        return self._sampled(questions) if self.samples else self._greedy(questions, found)

    def _greedy(self, questions: Sequence[Question], found: Found) -> tuple[list[Drafts], Counter[str]]:
        if isinstance(self.rewriter, FeedbackRewriter):
            made = self.rewriter.rewrite(questions, self.strategies, found)
        else:
            made = self.rewriter.rewrite(questions, self.strategies)
        drafts, skipped = [], Counter[str]()
        for place, (question, rewrites) in enumerate(zip(questions, made, strict=True)):
            if call_failed(rewrites):
                skipped[FAILED] += 1
                continue
            for strategy, queries in rewrites.queries.items():
                candidate = Candidate(SEPARATOR.join(queries), 0.0, None, 0, True)
                drafts.append(_drafts(place, question, strategy, [candidate], [queries]))
        return drafts, skipped

    def _sampled(self, questions: Sequence[Question]) -> tuple[list[Drafts], Counter[str]]:
        assert isinstance(self.rewriter, TrainedRewriter)  # checked in __post_init__
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


def _drafts(
    place: int, question: Question, strategy: str, candidates: Sequence[Candidate], queries: Sequence[tuple[str, ...]]
) -> Drafts:
    row = RewritePreferences(question.id, clean(question.text), strategy, 0.0, tuple(candidates), question.history)
    return Drafts(place, row, tuple(queries))
