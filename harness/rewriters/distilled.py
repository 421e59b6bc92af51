"""Distillation of a query rewriter: a language model rewrites questions, and its rewrites become training examples.

Each question is asked once, and saved when it is answered; a fallback to the question itself is no example.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.records import Question, clean, nfkc
from common.rewrites import Rewrites
from datamodules.formats.reading import read_questions
from datamodules.formats.recognition import AUTO, question_layouts
from datamodules.formats.rewrites import REWRITE_LAYOUTS, read_rewrites
from datamodules.formats.row_counts import RowCounts
from harness.rewriters.fallbacks import call_failed, with_fallbacks
from harness.rewriters.llm import LlmRewriter
from harness.runtime.failures import FailedQuestions, Failure, each_apart, telling_what_is_kept
from harness.runtime.memo import Values
from models.dmqr.rewrite_outputs import SEPARATOR, words_of
from models.dmqr.strategies import PAPER

STRATEGIES = PAPER  # asked for by default
QUESTIONS_AT_ONCE = 32  # asked in one call of the model, then saved
FAILED, UNUSABLE, UNCHANGED = "failed", "unusable", "unchanged"
REASONS = {  # why a rewrite is no training example
    FAILED: "the call failed",
    UNUSABLE: "no valid line in the reply after the repairs",
    UNCHANGED: "the same words as the question",
}
_FORMAT = 2  # of the saved lines; increase it when their meaning changes


@dataclass
class Distilled:
    """The training examples, and the outcomes of all rewrites."""

    rows: list[dict[str, Any]] = field(default_factory=list)  # of the layout `rewrites`
    dropped: list[dict[str, str]] = field(default_factory=list)  # question, strategy, reason, and why in words
    unchanged: int = 0  # rewrites with the same words as the question, kept or not
    costs: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # as in `Answer.costs`, and `repairs`
    failed: FailedQuestions = field(default_factory=FailedQuestions)  # questions that the next run asks again


def check_layout(layout: str) -> None:
    """Raise UserError if no questions can be read from the layout."""
    if layout not in (allowed := [AUTO, *question_layouts(), *REWRITE_LAYOUTS]):
        raise UserError(f"layout {layout!r} is unknown; allowed: {', '.join(allowed)}.")


def read_distinct(
    layout: str, sources: Sequence[str], limit: int | None, counts: RowCounts
) -> tuple[list[Question], int]:
    """The questions of files that are distinct in text and earlier turns, in file order, and how many repeat others.

    Args:
        layout: A layout of questions, or one of rewrites, whose questions have the earlier turns of their dialogues.
        sources: Files or data sets.
        limit: Maximum number of distinct questions, all files together.
        counts: Counts what is unusual.

    Raises:
        UserError, MissingInputError, DataError: As `datamodules.formats.reading.read_questions`.
    """
    check_layout(layout)
    found: dict[str, Question] = {}
    repeated = 0
    for question in chain.from_iterable(_questions(layout, source, counts) for source in sources):
        if _key(question) in found:
            repeated += 1
        elif limit is not None and len(found) == limit:
            break
        else:
            found[_key(question)] = question
    return list(found.values()), repeated


def _questions(layout: str, source: str, counts: RowCounts) -> Iterator[Question]:
    if layout not in REWRITE_LAYOUTS:
        yield from read_questions(layout, source, counts=counts)
        return
    for number, example in enumerate(read_rewrites(layout, source, counts=counts), 1):
        yield Question(str(number), example.question, history=example.history)


def _key(question: Question) -> str:
    return json.dumps([nfkc(question.text), *filter(None, map(nfkc, question.history))])


def distill(
    rewriter: LlmRewriter,
    questions: Sequence[Question],
    strategies: Sequence[str],
    keep_unchanged: bool,
    file: Path,
    depends_on: Mapping[str, object] | None,
) -> Distilled:
    """The rewrites of distinct questions as training examples, in the order of the questions.

    Args:
        rewriter: Asks the language model.
        questions: From `read_distinct`.
        strategies: All of them are asked for, or the rewriter chooses among them.
        keep_unchanged: Whether a rewrite with the same words as the question is an example.
        file: Journal of the answered questions; those that it holds are not asked again.
        depends_on: What determines the rewrites; None saves nothing.

    Raises:
        UserError: If no call can succeed (from the model).
        UnavailableError: If the model's endpoint does not answer; what was answered before is saved.
        ArtifactError: If the journal is corrupt or cannot be written.
    """
    values = Values(file, {**depends_on, "format": _FORMAT}, "rewrites") if depends_on is not None else Values()
    lost = 0

    def ask(places: Sequence[int]) -> list[dict[str, Any]]:
        nonlocal lost
        batch = [questions[place] for place in places]
        done = sum(_key(question) in values for question in questions) - lost
        kept = f"{done:,} of {len(questions):,} questions are kept" if depends_on is not None else ""
        with telling_what_is_kept(kept):
            found = each_apart(lambda some: rewriter.ask(some, strategies), batch, first=not len(values))
        made = [
            _failed(question, strategies, each) if isinstance(each, Failure) else each
            for question, each in zip(batch, found, strict=True)
        ]
        lost += sum(map(call_failed, made))
        return [*map(asdict, made)]

    found = values(
        [_key(question) for question in questions], ask, "rewriting questions", QUESTIONS_AT_ONCE,
        lasts=lambda value: not call_failed(Rewrites(**value)),
    )  # fmt: skip
    distilled = Distilled()
    distilled.failed.asked = len(questions)
    for question, value in zip(questions, found, strict=True):
        queries = {name: tuple(texts) for name, texts in value["queries"].items()}
        _collect(distilled, question, Rewrites(**{**value, "queries": queries}), keep_unchanged)
    return distilled


def _failed(question: Question, strategies: Sequence[str], failure: Failure) -> Rewrites:
    """In the place of the rewrites of a question that has failed."""
    return with_fallbacks(clean(question.text), strategies, {}, failure.reason, costs={"failed_calls": 1.0})


def _collect(distilled: Distilled, question: Question, made: Rewrites, keep_unchanged: bool) -> None:
    """Add the rewrites of one question."""
    text, turns = clean(question.text), [*filter(None, map(clean, question.history))]
    for name, cost in made.costs.items():
        distilled.costs[name] += cost
    distilled.costs["repairs"] += max(0.0, made.costs.get("model_calls", 0.0) - 1)
    if call_failed(made):
        distilled.failed.reasons[question.id] = next(iter(made.fallbacks.values()))
    for strategy, queries in made.queries.items():
        why = made.fallbacks.get(strategy, "")
        reason = "" if not why else FAILED if call_failed(made) else UNUSABLE
        if not why and [words_of(query) for query in queries] == [words_of(text)]:
            distilled.unchanged += 1
            reason, why = ("", "") if keep_unchanged else (UNCHANGED, REASONS[UNCHANGED])
        if reason:
            distilled.dropped.append({"question": text, "strategy": strategy, "reason": reason, "why": why})
        else:
            row = {"question": text, "strategy": strategy, "rewrite": SEPARATOR.join(queries)}
            distilled.rows.append(row | ({"history": turns} if turns else {}))
