"""Validation results of DMQR-RAG's generative rewriters, and the metrics that they give."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from datamodules.dmqr_recall import Recall
from models.dmqr.rewrite_outputs import words_of


class RewriteValidation(NamedTuple):
    """The results of one validation rewrite."""

    nll: float  # nats, summed over its tokens
    tokens: int
    strategy: str
    scores: tuple[float, float] | None = None  # exact match and token F1, 0 to 1; of generated ones
    empty: bool = False  # whether the generated text holds no query
    recall: Recall | None = None  # of its question, by all strategies; of one row of each searched question
    unchanged: bool = False  # whether the generated queries are the question alone


def is_question(queries: Sequence[str], question: str) -> bool:
    """Whether queries are a question alone, in its words, whatever their case and punctuation."""
    return [words_of(query) for query in queries] == [words_of(question)]


def summary(results: Sequence[RewriteValidation], recall_name: str) -> dict[str, float]:
    """Metrics of all rewrites by name; shares in [0, 1].

    Loss per token; of the generated ones exact match, token F1 (also by strategy) and the shares that are empty or the
    question; of the searched questions recall with their rewrites, and of the question alone, with equally many
    passages.

    Args:
        results: Of all rewrites, in order.
        recall_name: Of the first of these recalls; the other's ends in `_question`.
    """
    tokens = sum(each.tokens for each in results)
    scored = [(each.strategy, *each.scores, each.empty, each.unchanged) for each in results if each.scores is not None]
    found = {"loss_nats": sum(each.nll for each in results) / tokens, "rewrite_tokens": float(tokens)}
    if scored:
        columns = zip(["em", "f1", "empty", "unchanged"], list(zip(*scored, strict=True))[1:], strict=True)
        found |= {name: fmean(map(float, column)) for name, column in columns}
        names = sorted({strategy for strategy, *_ in scored})
        if len(names) > 1:
            found |= {f"f1_{name}": fmean([f for each, _, f, *_ in scored if each == name]) for name in names}
    if searched := [each.recall for each in results if each.recall is not None]:
        found[recall_name] = fmean([each.fused for each in searched])
        found[f"{recall_name}_question"] = fmean([each.question for each in searched])
    return found
