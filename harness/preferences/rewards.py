"""Rewards of retrieval: how well the passages that a rewrite finds answer its question."""

from collections.abc import Sequence
from typing import Any

from common.answer_metrics import has_answer
from common.ranges import PositiveFloat, PositiveInt
from common.records import Question, Ranked
from common.retrieval import share_found
from harness.rewriters.word_labels import gold_recall

NO_GOLD, NO_ANSWER = "no gold passage", "no gold answer"


def best_rank(hits: Sequence[Ranked], question: Question) -> int | None:
    """Rank, from 1, of the first gold passage; None without one."""
    gold = set(question.support)
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage.id in gold), None)


class _OfGoldPassages:
    """A reward of questions whose gold passages are known."""

    searches_gold = True

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question."""
        return None if question.support else NO_GOLD


class GoldRank(_OfGoldPassages):
    """ConvSearch-R1's reward: linear in the rank of the best gold passage (Zhu et al. 2025).

    From 2 at rank 1 to 1 at rank 10, from there to 0 at `depth`; 0 if it is not found.

    Args:
        depth: Passages that it looks at.
    """

    def __init__(self, depth: PositiveInt = 100) -> None:
        self.depth = depth

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        return {
            "reward": "rank of the best gold passage: 1 to 10 -> 2 to 1, 10 to depth -> 1 to 0",
            "depth": self.depth,
        }

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, 0 to 2."""
        ranks = [best_rank(hits[: self.depth], question) for question, hits in zip(questions, found, strict=True)]
        return [0.0 if rank is None else self._of(rank) for rank in ranks]

    def _of(self, rank: int) -> float:
        return 2 - (rank - 1) / 9 if rank <= 10 else 1 - (rank - 10) / (self.depth - 10)


class GoldRecall(_OfGoldPassages):
    """Recall of the gold passages.

    The smooth recall of the word labels, mean of C² / (C² + rank²), or the share among the first k.

    Args:
        half_rank: C: rank at which a passage counts half.
        k: Recall among the first k instead; half_rank is then not used.
        depth: Passages that the smooth recall looks at; passages below count 0.
    """

    def __init__(self, half_rank: PositiveFloat = 10.0, k: PositiveInt | None = None, depth: PositiveInt = 100) -> None:
        self.half_rank, self.k, self.depth = half_rank, k, depth if k is None else k

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        if self.k is not None:
            return {"reward": "recall@k of the gold passages", "k": self.k}
        return {"reward": "mean of C^2 / (C^2 + rank^2)", "half_rank": self.half_rank, "depth": self.depth}

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, 0 to 1."""
        return [self._of(question, hits[: self.depth]) for question, hits in zip(questions, found, strict=True)]

    def _of(self, question: Question, hits: Sequence[Ranked]) -> float:
        if self.k is None:
            return gold_recall(hits, question.gold_groups, self.half_rank)
        return share_found(question.gold_groups, (hit.passage.id for hit in hits))


class HasAnswer:
    """Whether the first passages contain a gold answer, by DPR's rule.

    Args:
        k: Passages that it looks at.
        share: Reward the share of the k passages that contain one, instead of 1 if any does.
    """

    def __init__(self, k: PositiveInt = 10, share: bool = False) -> None:
        self.k, self.share, self.depth = k, share, k

    @property
    def facts(self) -> dict[str, Any]:
        """What determines it."""
        return {
            "reward": "share of passages with an answer" if self.share else "whether a passage has an answer",
            "k": self.k,
        }

    def missing(self, question: Question) -> str | None:
        """Why it is not defined for a question."""
        return None if question.answers else NO_ANSWER

    def __call__(
        self, questions: Sequence[Question], queries: Sequence[Sequence[str]], found: Sequence[Sequence[Ranked]]
    ) -> list[float]:
        """The reward of every row, 0 to 1."""
        known: dict[tuple[tuple[str, ...], str], bool] = {}  # the rows of a question find many passages in common
        rewards = []
        for question, hits in zip(questions, found, strict=True):
            count = 0
            for hit in hits[: self.k]:
                key = question.answers, hit.passage.id
                if key not in known:
                    known[key] = has_answer(hit.passage.text, question.answers)
                count += known[key]
                if count and not self.share:
                    break
            rewards.append(count / self.k if self.share else float(count > 0))
        return rewards
