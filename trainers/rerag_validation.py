"""RE-RAG's validation: answers read from the estimator's best contexts, its ranking, its calibration (Appendix B, Section 5.3).

`papers.md` A leaves the level of relevance logits open, and training fixes their spread no better: what divides them where
they weigh answers, the temperature of P_RE, is chosen here as calibration is, if the protocol says so.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.answer_metrics import exact_match, f1
from datamodules.examples.context_sets import ContextSet
from models.metrics import auroc
from models.rerag.calibration import Calibration
from models.rerag.generator import Generator
from models.rerag.marginal_reader import MarginalReader, weigh
from models.rerag.unanswerable import best_refusal_threshold
from trainers.run.classification_metrics import expected_calibration_error
from trainers.run.validation_plots import validation_figures

RECALL_AT = (1, 5, 10, 20)
TEMPERATURES = (1.0, 0.5, 0.33, 0.2, 0.125)  # of P_RE, that are tried; the paper's first


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer and what it is worth, 0 to 1."""

    text: str
    exact: float
    token_f1: float


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """One validation question."""

    row: int  # its place among the validation sets
    scores: tuple[float, ...]  # relevance logits of its contexts; zeros without an estimator
    labels: tuple[bool, ...]  # which of them are relevant
    read: tuple[ReadAnswer, ...] = ()  # by temperature, where several are tried; empty without a generator
    gen_nats: float | None = None  # -log P(gold answer | contexts)


@dataclass(frozen=True, slots=True)
class Summary:
    """A validation as numbers."""

    facts: dict[str, float]
    chosen: int = 0  # which reading of every question counts
    served: dict[str, Any] = field(default_factory=dict)  # what an export takes along
    figures: dict[str, Any] = field(default_factory=dict)


def score_questions(
    rows: Sequence[int],
    sets: Sequence[ContextSet],
    relevance_BN: Tensor,
    gen_nats_B: Tensor | None,
    generator: Generator | None,
    packed: bool,
    ranked: bool,
    contexts: int,
    max_answer_tokens: int,
    fit_temperature: bool = False,
) -> list[QuestionScores]:
    """Read and compare a batch of questions.

    Args:
        rows: Places of the questions.
        sets: The questions with all their contexts.
        relevance_BN: Relevance logits; anything where there is no context.
        gen_nats_B: -log P of each gold answer; None without a generator.
        generator: Reads; None for an estimator alone.
        packed: Whether it reads all contexts in one call.
        ranked: Whether the logits come from an estimator; else the first contexts are read, weighed alike.
        contexts: How many of the best contexts are read.
        max_answer_tokens: Longest answer.
        fit_temperature: ReadAnswer `thorough` at every temperature, instead of `fast` at 1 as the released code does; only where
            an estimator ranks.
    """
    scores = [[0.0] * len(s.passages) if packed else r[: len(s.passages)].tolist()
              for s, r in zip(sets, relevance_BN, strict=True)]  # fmt: skip
    texts: list[tuple[str, ...]] = [()] * len(sets)
    if generator is not None and packed:
        answers = generator.answers([(s.question.text, s.passages) for s in sets], max_answer_tokens)
        texts = [(text,) for text, _ in answers]
    elif generator is not None:
        fit_temperature &= ranked
        order = [_best(s, contexts) if ranked else list(range(len(s)))[:contexts] for s in scores]
        matrices = MarginalReader(generator, "thorough" if fit_temperature else "fast", max_answer_tokens).matrices(
            [s.question.text for s in sets],
            [[s.passages[n] for n in kept] for s, kept in zip(sets, order, strict=True)],
        )
        for place, (matrix, kept) in enumerate(zip(matrices, order, strict=True)):
            relevance_N = torch.tensor([scores[place][n] for n in kept])
            tried = TEMPERATURES if fit_temperature else (1.0,)
            texts[place] = tuple(weigh(matrix, relevance_N / temperature).text for temperature in tried)
    judged = []
    for place, (row, one) in enumerate(zip(rows, sets, strict=True)):
        gold = one.question.answers
        read = tuple(ReadAnswer(text, exact_match(text, gold), f1(text, gold)) for text in texts[place])
        nats = float(gen_nats_B[place]) if gen_nats_B is not None else None
        judged.append(QuestionScores(row, tuple(scores[place]), one.labels, read, nats))
    return judged


def _best(scores: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda n: -scores[n])[:count]


def first_hit(scores: Sequence[float], labels: Sequence[bool]) -> int | None:
    """0-based rank of the best relevant context; ties count as badly as they can; None where none is relevant."""
    hits = [score for score, label in zip(scores, labels, strict=True) if label]
    if not hits:
        return None
    best = max(hits)
    return sum(score >= best for score, label in zip(scores, labels, strict=True) if not label)


def summarize(judged: Sequence[QuestionScores], ranked: bool, draw: bool) -> Summary:
    """Metrics of all validation questions; with an estimator also calibration, refusal threshold and temperature.

    Of the temperatures tried, the one under which most questions are answered right; the nearest to 1 among equals.  EM and F1
    are then the best of those, on the questions they were chosen on.

    Args:
        judged: Each question once.
        ranked: Whether there is an estimator.
        draw: Whether to make figures.
    """
    facts: dict[str, float] = {"questions": float(len(judged))}
    served: dict[str, Any] = {}
    chosen = 0
    if judged and judged[0].read:
        exact_TN = np.array([[one.exact for one in each.read] for each in judged]).T
        chosen = int(exact_TN.sum(axis=1).argmax())
        facts["em"] = 100 * float(exact_TN[chosen].mean())
        facts["f1"] = 100 * float(np.mean([one.read[chosen].token_f1 for one in judged]))
        if len(exact_TN) > 1:
            served["relevance_temperature"] = facts["relevance_temperature"] = TEMPERATURES[chosen]
    nats = [one.gen_nats for one in judged if one.gen_nats is not None]
    if nats:
        facts["gen_nats"] = float(np.mean(nats))
    if not ranked:
        return Summary(facts)
    ranks = [first_hit(one.scores, one.labels) for one in judged]
    for k in RECALL_AT:
        facts[f"recall_{k}"] = 100 * float(np.mean([rank is not None and rank < k for rank in ranks]))
    facts["mrr"] = float(np.mean([0.0 if rank is None else 1 / (rank + 1) for rank in ranks]))
    scores_P = np.array([score for one in judged for score in one.scores])
    labels_P = np.array([label for one in judged for label in one.labels])
    if labels_P.all() or not labels_P.any():  # nothing to calibrate on
        return Summary(facts, chosen, served)
    calibration = Calibration.fit(scores_P.tolist(), labels_P.tolist())
    probabilities_P = np.array([calibration(score) for score in scores_P])
    best = [calibration(max(one.scores)) for one in judged]
    answerable = [any(one.labels) for one in judged]
    threshold, refusal_f1 = best_refusal_threshold(best, answerable)
    facts |= {
        "context_auroc": auroc(scores_P, labels_P),
        "calibration_error": expected_calibration_error(probabilities_P, labels_P.astype(float)),
        "refusal_threshold": threshold,
    }
    if not all(answerable) and any(answerable):
        facts |= {"refusal_f1": refusal_f1, "answerable_auroc": auroc(best, answerable)}
    figures = validation_figures(probabilities_P, labels_P.astype(float), threshold) if draw else {}
    served |= {"calibration": asdict(calibration), "refusal_threshold": threshold}
    return Summary(facts, chosen, served, figures)
