"""RE-RAG's validation: answers from the estimator's best contexts, ranking, calibration (App. B, Section 5.3).

Training determines neither the level nor the spread of the relevance logits. So calibration, and if the preset says
so the temperature of P_RE that weights the answers, are fitted on the validation questions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.answer_metrics import usual_scores
from datamodules.examples.context_sets import ContextSet
from models.calibration import Calibration
from models.metrics import auroc
from models.rerag.generator import Generator
from models.rerag.marginal_reader import MarginalReader, weigh
from models.rerag.unanswerable import best_refusal_threshold, cheapest_refusal_threshold, detection
from trainers.rerag_options import Abstention
from trainers.run.classification_metrics import expected_calibration_error
from trainers.run.learning import EXPLAINED, REFUSED, explained
from trainers.run.validation_plots import validation_figures

RECALL_AT = (1, 5, 10, 20)
TEMPERATURES = (1.0, 0.5, 0.33, 0.2, 0.125)  # candidates for P_RE; the first is the paper's


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A generated answer with its exact match and token F1, each 0 to 1."""

    text: str
    exact: float
    token_f1: float


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """Results of one validation question."""

    row: int  # index of the question in the validation sets
    scores: tuple[float, ...]  # relevance logits of the contexts; zeros for uniform weights
    labels: tuple[bool, ...]  # whether each context is relevant
    answers: tuple[ReadAnswer, ...] = ()  # one per temperature tried; empty without a generator
    gen_nats: float | None = None  # -log P(gold answer | contexts)
    answer_logps: tuple[float, ...] = ()  # log P_G(gold answer | context) of every context; empty without a generator
    labelled: bool = True  # whether `labels` are known


@dataclass(frozen=True, slots=True)
class Summary:
    """Results of a validation."""

    metrics: dict[str, float]
    temperature_index: int = 0  # which answer of every question counts
    fitted: dict[str, Any] = field(default_factory=dict)  # what an export stores
    figures: dict[str, Any] = field(default_factory=dict)
    not_fitted: str = ""  # what could not be fitted, and why


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
    answer_logp_BN: Tensor | None = None,
) -> list[QuestionScores]:
    """Generate answers to a batch of questions and score them.

    Args:
        rows: Indices of the questions in the validation sets.
        sets: The questions with all their contexts.
        relevance_BN: Relevance logits, equal ones for uniform weights; padding is ignored.
        gen_nats_B: -log P of each gold answer, nats; None without a generator.
        generator: Generates the answers; None for an estimator alone.
        packed: Whether the generator reads all contexts in one call.
        ranked: Whether the logits come from an estimator.
        contexts: Number of best contexts to read.
        max_answer_tokens: Longest answer, in tokens.
        fit_temperature: Marginalize by `thorough` at every temperature instead of `fast` at temperature 1 (the released
            code); without an estimator ignored.
        answer_logp_BN: log P_G of each gold answer under every context, nats; None without a generator.
    """
    scores = [[0.0] * len(s.passages) if packed else r[: len(s.passages)].tolist()
              for s, r in zip(sets, relevance_BN, strict=True)]  # fmt: skip
    texts: list[tuple[str, ...]] = [()] * len(sets)
    if generator is not None and packed:
        answers = generator.answers([(s.question.text, s.passages) for s in sets], max_answer_tokens)
        texts = [(text,) for text, _ in answers]
    elif generator is not None:
        fit_temperature &= ranked
        order = [_best(s, contexts) for s in scores]  # the first ones if all scores are equal
        matrices = MarginalReader(generator, "thorough" if fit_temperature else "fast", max_answer_tokens).matrices(
            [s.question.text for s in sets],
            [[s.passages[n] for n in kept] for s, kept in zip(sets, order, strict=True)],
        )
        for place, (matrix, kept) in enumerate(zip(matrices, order, strict=True)):
            relevance_N = torch.tensor([scores[place][n] for n in kept])
            tried = TEMPERATURES if fit_temperature else (1.0,)
            texts[place] = tuple(weigh(matrix, relevance_N / temperature).text for temperature in tried)
    scored = []
    for place, (row, one) in enumerate(zip(rows, sets, strict=True)):
        answers_read = tuple(ReadAnswer(text, *usual_scores(text, one.question.answers)) for text in texts[place])
        nats = float(gen_nats_B[place]) if gen_nats_B is not None else None
        logps = () if answer_logp_BN is None else tuple(answer_logp_BN[place, : len(one.labels)].tolist())
        own = tuple(scores[place]), one.labels, answers_read, nats, logps, one.labelled
        scored.append(QuestionScores(row, *own))
    return scored


def _best(scores: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda n: -scores[n])[:count]


def first_hit(scores: Sequence[float], labels: Sequence[bool]) -> int | None:
    """0-based rank of the best relevant context, behind all irrelevant ones of the same score.

    None if none is relevant.
    """
    hits = [score for score, label in zip(scores, labels, strict=True) if label]
    if not hits:
        return None
    best = max(hits)
    return sum(score >= best for score, label in zip(scores, labels, strict=True) if not label)


def summarize(
    questions: Sequence[QuestionScores], ranked: bool, draw: bool, abstention: Abstention = Abstention()
) -> Summary:
    """Metrics of all validation questions; with an estimator also calibration, refusal threshold and temperature.

    Recall, calibration and threshold are of the questions with labels. The temperature with the highest exact match is
    chosen, among equals the one nearest to 1. EM and F1 are measured on the questions that the temperature is chosen
    on. A refusal threshold is chosen where there are questions of both kinds.

    Args:
        questions: Each validation question once.
        ranked: Whether there is an estimator.
        draw: Whether to draw figures.
        abstention: How the refusal threshold is chosen.
    """
    metrics: dict[str, float] = {"questions": float(len(questions))}
    fitted: dict[str, Any] = {}
    chosen = 0
    if questions and questions[0].answers:
        exact_TN = np.array([[one.exact for one in each.answers] for each in questions]).T
        chosen = int(exact_TN.sum(axis=1).argmax())
        metrics["em"] = float(exact_TN[chosen].mean())
        metrics["f1"] = float(np.mean([one.answers[chosen].token_f1 for one in questions]))
        if len(exact_TN) > 1:
            fitted["relevance_temperature"] = metrics["relevance_temperature"] = TEMPERATURES[chosen]
    nats = [one.gen_nats for one in questions if one.gen_nats is not None]
    if nats:
        metrics["gen_nats"] = float(np.mean(nats))
    questions = [one for one in questions if one.labelled]
    if not ranked:
        return Summary(metrics)
    if not questions:
        reason = "calibration and refusal threshold: not fitted, because no validation question has labels"
        return Summary(metrics, chosen, fitted, not_fitted=reason)
    ranks = [first_hit(one.scores, one.labels) for one in questions]
    metrics |= {f"recall_{k}": float(np.mean([rank is not None and rank < k for rank in ranks])) for k in RECALL_AT}
    metrics["mrr"] = _mean_reciprocal(ranks)
    if all(one.answer_logps for one in questions):  # the generator's own ranking, which teaches the estimator
        taught = [first_hit(one.answer_logps, one.labels) for one in questions]
        metrics["teacher_recall_1"] = float(np.mean([rank == 0 for rank in taught]))
        metrics["teacher_mrr"] = _mean_reciprocal(taught)
    scores_P = np.array([score for one in questions for score in one.scores])
    labels_P = np.array([label for one in questions for label in one.labels])
    if labels_P.all() or not labels_P.any():  # calibration needs both classes
        kind = "every" if labels_P.all() else "no"
        reason = f"calibration and refusal threshold: not fitted, because {kind} validation context is relevant"
        return Summary(metrics, chosen, fitted, not_fitted=reason)
    calibration = Calibration.fit(scores_P.tolist(), labels_P.tolist())
    probabilities_P = np.array([calibration(score) for score in scores_P])
    best = np.array([calibration(max(one.scores)) for one in questions])
    kept = abstention.contexts
    answerable = np.array([any(one.labels[n] for n in _best(one.scores, kept)) for one in questions], dtype=bool)
    metrics |= {
        "context_auroc": auroc(scores_P, labels_P),
        "calibration_error": expected_calibration_error(probabilities_P, labels_P.astype(float)),
        EXPLAINED: explained([(scores_P, labels_P)]),
    }
    fitted |= {"calibration": asdict(calibration)}
    threshold, not_fitted = 0.5, ""  # a threshold for the confusion matrix
    if not answerable.all() and answerable.any():
        if abstention.cost is None:
            threshold, _ = best_refusal_threshold(best, answerable)
        else:
            threshold, cost = cheapest_refusal_threshold(best, answerable, abstention.cost)
            metrics["refusal_cost_per_question"] = cost
        metrics |= {
            "refusal_threshold": threshold,
            "refusal_f1": detection(best, answerable, threshold).f1,
            REFUSED: float((best < threshold)[answerable].mean()),
            "answerable_auroc": auroc(best, answerable),
        }
        fitted |= {"refusal_threshold": threshold, "refusal_contexts": kept, "refusal_cost": abstention.cost}
    else:
        kind = "every validation question" if answerable.all() else "no validation question"
        not_fitted = f"refusal threshold: not fitted, because {kind} has a relevant context among its best {kept}"
    figures = validation_figures(probabilities_P, labels_P.astype(float), threshold) if draw else {}
    return Summary(metrics, chosen, fitted, figures, not_fitted)


def _mean_reciprocal(ranks: Sequence[int | None]) -> float:
    return float(np.mean([0.0 if rank is None else 1 / (rank + 1) for rank in ranks]))


def metric_names(reads: bool, ranks: bool) -> tuple[str, ...]:
    """The metrics of `summarize`, with a generator (`reads`), and with an estimator (`ranks`)."""
    recall = tuple(f"recall_{k}" for k in RECALL_AT)
    ranked = (*recall, "mrr", "context_auroc", "calibration_error", "refusal_f1", "answerable_auroc")
    return (("em", "f1", "gen_nats") if reads else ()) + (ranked if ranks else ())


def examples(
    questions: Sequence[QuestionScores], sets: Sequence[ContextSet], temperature_index: int
) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a table of validation questions, each with the answer at one of the temperatures."""
    rows = []
    for one in questions:
        best = max(range(len(one.scores)), key=one.scores.__getitem__)
        question, passage = sets[one.row].question, sets[one.row].passages[best]
        text = one.answers[temperature_index].text if one.answers else ""
        rows.append([question.text, text, "; ".join(question.answers), passage.title, one.scores[best]])
    return ["question", "answer", "gold", "best context", "relevance (nats)"], rows
