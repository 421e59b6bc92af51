"""Check of the strategies that a rewriter is to rewrite by, before it is loaded."""

from collections.abc import Sequence

from common.command_line import call_with_known
from common.errors import UserError


def check_strategies(rewriter: object, strategies: Sequence[str]) -> None:
    """Raise UserError if no strategy is named, one is named twice, or a rewriter not yet built does not know one.

    A rewriter that is built refuses an unknown strategy when it is asked.
    """
    if not strategies or len(set(strategies)) < len(strategies):
        raise UserError(f"strategies is {list(strategies)}; it must name at least one, each once.")
    if check := getattr(getattr(rewriter, "class_type", type(rewriter)), "check_strategies", None):
        options = getattr(rewriter, "init_args", None)
        if options is not None:
            call_with_known(check, {**options, "strategies": strategies})
