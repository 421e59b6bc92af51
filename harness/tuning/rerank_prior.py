"""Fits the weight of the retriever's ranks beside an estimator's logits, and the calibration of the sum.

The weight is the one of a grid with the best recall of gold passages. The calibration is fitted to the same candidates,
so that P(relevant) holds at the depth that is served.

Shape legend: C candidates of a question, G gold passages of a question.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import findable, has_answer
from common.errors import UserError
from common.progress import track
from common.records import Question, Ranked
from harness.evaluation.retrieval_scores import by_document, holders_of
from harness.evaluation.serialization import digest
from harness.retrievers.rerank_prior import RerankPrior
from models.calibration import Calibration
from models.serving_manifest import manifest_sha256

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)  # nats
Labels = Literal["gold", "has_answer"]
_QUESTIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of a question, in the order in which they were found."""

    logits: Sequence[float]
    retrieved: Sequence[float]  # the retriever's scores
    gold_GC: NDArray[np.bool_]  # which candidates are or hold each gold passage; by answers: one row

    @classmethod
    def of(cls, question: Question, found: Sequence[Ranked], logits: Sequence[float], labels: Labels) -> Self | None:
        """None without gold passages or answers."""
        passages = [hit.passage for hit in found]
        if labels == "gold":
            held = holders_of(question, by_document(passages) if question.gold.segments else {})
            rows = [[passage.id in own for passage in passages] for own in held]
        else:
            looked_for = findable(question.answers)
            rows = [[has_answer(passage.text, looked_for) for passage in passages]] if looked_for else []
        if not rows:
            return None
        return cls(logits, [hit.score for hit in found], np.array(rows, dtype=bool))

    def recall(self, weight: float, k: int) -> float:
        """Recall with a weight of the prior: the mean of recall@1 to recall@k."""
        if not self.gold_GC.any():
            return 0.0
        order = np.argsort(-np.array(sums(self, weight)), kind="stable")
        first_G = np.where(self.gold_GC.any(axis=1), self.gold_GC[:, order].argmax(axis=1), k)  # places from 0
        return float((k - first_G).clip(0).mean() / k)


def batches_of(questions: Sequence[Question], doing: str) -> Iterator[Sequence[Question]]:
    """Questions whose candidates are in memory together."""
    starts = range(0, len(questions), _QUESTIONS_AT_ONCE)
    return track([questions[i : i + _QUESTIONS_AT_ONCE] for i in starts], len(questions), doing, len)


def score_all(
    questions: Sequence[Question],
    score: Callable[[Sequence[Question]], Iterable[tuple[Sequence[Ranked], Sequence[float]]]],
    labels: Labels,
) -> list[ScoredCandidates | None]:
    """The candidates of every question with logits and labels, batch by batch.

    Args:
        questions: Validation questions.
        score: The candidates of some questions, with the retriever's scores, and their logits; from a memo.
        labels: What is relevant: gold passages and segments, or passages with an answer.
    """
    return [
        ScoredCandidates.of(question, *each, labels)
        for batch in batches_of(questions, "scoring candidates")
        for question, each in zip(batch, score(batch), strict=True)
    ]


def sums(scored: ScoredCandidates, weight: float) -> list[float]:
    """Logit and prior of each candidate, nats."""
    return RerankPrior(weight, Calibration())(scored.logits, scored.retrieved)


def fit_prior(
    questions: Sequence[Question],
    scored: Sequence[ScoredCandidates | None],
    k: int,
    serving: Path | None,
    facts: dict[str, Any],
) -> tuple[RerankPrior, list[str]]:
    """The weight with the greatest mean recall, among equals the smallest, and the calibration; with lines on both.

    Args:
        questions: Validation questions.
        scored: Their candidates; None for a question without gold.
        k: Passages that are kept.
        serving: Folder of the estimator.
        facts: What the candidates depend on, for the file; JSON types.

    Raises:
        UserError: If no question has gold passages, or all candidates are gold or none is.
    """
    known = [each for each in scored if each is not None]
    if not known:
        raise UserError("the prior needs questions with gold passages, or with answers by --tuning.labels has_answer.")
    recalls = [100 * float(np.mean([each.recall(weight, k) for each in known])) for weight in WEIGHTS]
    best = int(np.argmax(np.round(recalls, 9)))
    labels_P = np.concatenate([each.gold_GC.any(axis=0) for each in known]).tolist()
    try:
        calibration = Calibration.fit(np.concatenate([sums(each, WEIGHTS[best]) for each in known]).tolist(), labels_P)
    except ValueError as error:
        raise UserError(f"the prior cannot be fitted on these questions: {error}. Give more questions.") from error
    asked = [question for question, each in zip(questions, scored, strict=True) if each is not None]
    facts = {"questions": len(asked), "sha256": digest(asked)[:12], "k": k, **facts}
    prior = RerankPrior(WEIGHTS[best], calibration, manifest_sha256(serving), facts)
    return prior, [
        f"prior weight {WEIGHTS[best]:g} nats, fitted on {len(asked):,} questions: mean recall@1 to @{k} "
        f"{recalls[best]:.2f} %; by the estimator alone {recalls[0]:.2f} %",
        f"calibration: scale {calibration.scale:.4g}, offset {calibration.offset:.4g}, on {len(labels_P):,} candidates",
    ]
