"""H@k, P@k and recall@k of ranked passages, by one rule for all methods; every (question, passage) is labelled once.

    H@k       1 if a relevant passage is among the first k, else 0
    P@k       relevant passages among the first k, divided by k even if there are fewer
    recall@k  by gold passages: share of the question's gold passages among the first k; by has-answer: H@k

Shape legend: N questions, M methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.records import Passage, Question, Ranked

Rule = Literal["gold passage", "has-answer"]


@dataclass(frozen=True, slots=True)
class _Labelled:
    gold: frozenset[str]
    known: bool  # whether the rule applies to the question
    labels: dict[str, bool]  # by passage id, as far as they were asked for


class Relevance:
    """Which passages are relevant to each question.

    Args:
        questions: All of them.

    The rule is `gold passage` if a question's file ships its gold passages, for the questions with all of them; else
    `has-answer` (DPR's: the passage contains a gold answer). Other questions have no value (NaN).
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        has_gold = [bool(each.support) and not each.unshipped_support for each in questions]
        self.rule: Rule = "gold passage" if any(has_gold) else "has-answer"
        self._of = [
            _Labelled(
                frozenset(each.support if gold else ()), gold if any(has_gold) else bool(each.answers), {}
            )
            for each, gold in zip(questions, has_gold, strict=True)
        ]  # fmt: skip

    @property
    def questions_known(self) -> int:
        """Number of questions to which the rule applies."""
        return sum(each.known for each in self._of)

    def relevant(self, number: int, passage: Passage) -> bool:
        """Whether a passage is relevant to the question with this number."""
        each = self._of[number]
        if passage.id not in each.labels:
            answers = self.questions[number].answers
            by_gold = self.rule == "gold passage"
            each.labels[passage.id] = passage.id in each.gold if by_gold else has_answer(passage.text, answers)
        return each.labels[passage.id]

    def hits_and_precision(
        self, ranked: Sequence[Sequence[Ranked]], k: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """H@k and P@k, (N,) each, NaN where the rule does not apply.

        Args:
            ranked: Passages of each question, best first, each once.
            k: Number of first passages.
        """
        counts_N = self._counts(ranked, k)
        return np.where(np.isnan(counts_N), np.nan, counts_N > 0), counts_N / k

    def recall(self, ranked: Sequence[Sequence[Ranked]], k: int | None) -> NDArray[np.float64]:
        """recall@k, (N,).

        Args:
            ranked: Passages of each question, best first, each once.
            k: Number of first passages; all when None.
        """
        return self._recall(self._counts(ranked, k))

    def recall_of(self, passages: Sequence[Sequence[Passage]]) -> NDArray[np.float64]:
        """As `recall`, of passages without an order."""
        return self._recall(self._counts([[Ranked(each, 0.0) for each in own] for own in passages], None))

    def _recall(self, counts_N: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.rule == "has-answer":
            return np.where(np.isnan(counts_N), np.nan, counts_N > 0)
        totals_N = np.array([len(each.gold) or np.nan for each in self._of], dtype=np.float64)
        return counts_N / totals_N

    def _counts(self, ranked: Sequence[Sequence[Ranked]], k: int | None) -> NDArray[np.float64]:
        return np.array(
            [
                sum(self.relevant(number, hit.passage) for hit in hits[:k]) if self._of[number].known else np.nan
                for number, hits in enumerate(ranked)
            ],
            dtype=np.float64,
        )
