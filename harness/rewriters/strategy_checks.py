"""Checks of a rewriter's inputs: known strategies, and the passages of a first search."""

from collections.abc import Sequence

from common.errors import UserError
from common.records import Question, Ranked
from harness.interfaces import FeedbackRewriter


def check_each_once(strategies: Sequence[str]) -> None:
    """Raise UserError if no strategy is named, or one is named twice."""
    if not strategies or len(set(strategies)) < len(strategies):
        raise UserError(f"strategies is {list(strategies)}; it must name at least one, each once.")


def check_known(rewriter: object, strategies: Sequence[str]) -> None:
    """Raise UserError if a rewriter does not know a strategy; one without an attribute `strategies` may know any."""
    known = getattr(rewriter, "strategies", None)
    unknown = [name for name in strategies if known is not None and name not in known]
    if unknown:
        name = getattr(rewriter, "name", type(rewriter).__name__)
        raise UserError(f"{name} does not know the strategy {unknown[0]!r}; it knows: {', '.join(known or ())}.")


def check_strategies(rewriter: object, strategies: Sequence[str]) -> None:
    """Raise UserError if the strategies are not named once each, or one is unknown to a rewriter.

    Of a trained rewriter it reads the manifest alone, so that a wrong name is refused before a model is loaded.
    """
    check_each_once(strategies)
    check_known(rewriter, strategies)


def check_found(rewriter: FeedbackRewriter, questions: Sequence[Question], found: Sequence[Sequence[Ranked]]) -> None:
    """Raise UserError if a rewriter that reads what a first search found is not given it for every question."""
    if len(found) != len(questions):
        raise UserError(
            f"{rewriter.name} reads what a first search found: use it in "
            "harness.retrievers.multi_query.MultiQueryRetriever or harness.systems.dmqr.Dmqr, which give it."
        )
