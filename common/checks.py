"""Range checks of arguments, with one wording for all error lines."""

from collections.abc import Iterable

from common.errors import UserError


def check_at_least(least: float, hint: str = "", **numbers: float | None) -> None:
    """Raise UserError, with its name, for the first number below `least`; None passes.  `hint` follows the limit."""
    for name, number in numbers.items():
        if number is not None and number < least:
            raise UserError(f"{name} must be at least {least}{hint}, got {number}.")


def check_share(**shares: float | None) -> None:
    """Raise UserError, with its name, for the first number outside [0, 1]; None passes."""
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise UserError(f"{name} must lie in [0, 1], got {share}.")


def check_choice(allowed: Iterable[str], **values: str) -> None:
    """Raise UserError, with its name and the allowed ones, for the first value that is not allowed."""
    allowed = tuple(allowed)
    for name, value in values.items():
        if value not in allowed:
            raise UserError(f"{name} {value!r} is unknown; allowed: {', '.join(allowed)}.")
