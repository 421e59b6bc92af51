"""Retrieval scores of every question: recall, hit rate and precision at k, MRR, and has-answer recall and precision at k.

Shape legend: N questions.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import has_answer
from common.checks import check_at_least
from common.records import Passage, Question, Ranked


def retrieval_scores(
    questions: Sequence[Question],
    evidence: Sequence[Sequence[Ranked]],
    ks: Sequence[int],
    answers_in_all: bool = False,
) -> dict[str, NDArray[np.float64]]:
    """Scores of every question's evidence against its gold passages and its answers; (N,) each, 0 to 1.

    A passage that occurs several times counts once, at its first place.  NaN where a score is undefined: the first four if the
    file names no gold passages or does not ship all of them, has-answer if it gives no answers.

        recall@k      share of the gold passages among the first k
        hit@k         1 if a gold passage is among the first k, else 0
        precision@k   gold passages among the first k, divided by k even if there are fewer, as trec_eval does
        MRR           1 / place of the first gold passage, in all of the evidence; 0 without one
        has-answer@k  1 if one of the first k contains an answer by DPR's rule (`common.answer_metrics.has_answer`), else 0
        has-answer precision@k  those of the first k that contain one, divided by k; only with `answers_in_all`

    Args:
        questions: The questions, with the gold passages and answers of their file.
        evidence: The passages found for each question, best first.
        ks: Numbers of passages, in the order of the columns.
        answers_in_all: Search all of the first passages for an answer, not only up to the first that contains one.

    Returns:
        The columns by name: for each k `recall@k`, `hit@k`, `precision@k`, `has-answer@k`, with `answers_in_all`
        `has-answer precision@k`, then `MRR`.

    Raises:
        UserError: If a k is below 1.
    """
    for k in ks:
        check_at_least(1, k=k)
    rows = [_scores(question, hits, ks, answers_in_all) for question, hits in zip(questions, evidence, strict=True)]
    of_k = ("recall", "hit", "precision", "has-answer", *["has-answer precision"] * answers_in_all)
    names = [f"{name}@{k}" for k in ks for name in of_k]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in [*names, "MRR"]}


def _scores(question: Question, hits: Sequence[Ranked], ks: Sequence[int], answers_in_all: bool) -> dict[str, float]:
    """One question's scores by column."""
    passages = list({hit.passage.id: hit.passage for hit in hits}.values())
    gold = set() if question.unshipped_support else set(question.support)
    places = [place for place, passage in enumerate(passages, start=1) if passage.id in gold]
    with_answer = _with_answer(passages[: max(ks, default=0)], question.answers)
    held = [*with_answer] if answers_in_all else [*islice(with_answer, 1)]
    first_answer = min(held, default=inf)
    scores = {"MRR": (1 / places[0] if places else 0.0) if gold else nan}
    for k in ks:
        found = sum(place <= k for place in places)
        scores[f"recall@{k}"] = found / len(gold) if gold else nan
        scores[f"hit@{k}"] = float(found > 0) if gold else nan
        scores[f"precision@{k}"] = found / k if gold else nan
        scores[f"has-answer@{k}"] = float(first_answer <= k) if question.answers else nan
        if answers_in_all:
            scores[f"has-answer precision@{k}"] = sum(place <= k for place in held) / k if question.answers else nan
    return scores


def _with_answer(passages: Sequence[Passage], answers: Sequence[str]) -> Iterator[int]:
    """Places, from 1, of the passages that contain an answer."""
    return (place for place, each in enumerate(passages, start=1) if has_answer(each.text, answers))
