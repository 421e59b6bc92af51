"""Fallbacks of rewriters: a strategy without a valid query gets the question itself, which is recorded and counted."""

from collections import Counter
from collections.abc import Mapping, Sequence

from common.progress import say
from common.rewrites import Rewrites

_SHOWN_REASONS = 3  # different reasons that one line names


def with_fallbacks(
    question: str,
    strategies: Sequence[str],
    queries: Mapping[str, tuple[str, ...]],
    why: str | Mapping[str, str],
    reason: str = "",
    costs: Mapping[str, float] | None = None,
) -> Rewrites:
    """The queries of a question by every strategy; the question itself where there is no query.

    Args:
        question: Its text.
        strategies: Those that need a query, in order.
        queries: By strategy.
        why: Why queries are missing, for all strategies or by strategy.
        reason: For the choice of the strategies.
        costs: Of rewriting; the number of fallbacks is added if there are any.
    """
    fallbacks = {name: why if isinstance(why, str) else why[name] for name in strategies if not queries.get(name)}
    counted = {"fallbacks": float(len(fallbacks))} if fallbacks else {}
    return Rewrites(
        {name: (question,) if name in fallbacks else queries[name] for name in strategies},
        fallbacks, reason, {**(costs or {}), **counted},
    )  # fmt: skip


def call_failed(rewrites: Rewrites) -> bool:
    """Whether rewrites are missing because a call failed: asked again, the model may give them."""
    return bool(rewrites.fallbacks and rewrites.costs.get("failed_calls"))


def tell_fallbacks(name: str, found: list[Rewrites]) -> list[Rewrites]:
    """The same; says in one line how many rewrites fell back to the question, and why; nothing if none did.

    Args:
        name: Of the rewriter.
        found: What it made of the questions.
    """
    reasons = Counter(why for each in found for why in each.fallbacks.values())
    if reasons:
        count = sum(len(each.queries) for each in found)
        shown = "; ".join(f"{why} ({times})" for why, times in reasons.most_common(_SHOWN_REASONS))
        say(f"{name}: {sum(reasons.values())} of {count} rewrites fell back to the question: {shown}.")
    return found
