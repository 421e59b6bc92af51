"""Range checks of arguments, with one wording for all error lines.

A class that loads files checks its arguments in a static method `check_options`, with the constructor's names: the
constructor calls it first, and the command lines call it for all classes of a configuration before they build the first
one.
"""

from collections.abc import Iterable
from math import inf
from typing import Literal

from common.errors import UserError

Precision = Literal["auto", "fp32", "bf16"]  # of inference; auto: bf16 where the device has it in hardware


def check_at_least(least: float, hint: str = "", **numbers: float | None) -> None:
    """Raise UserError, with its name, for the first number that is not finite or below `least`; None passes.

    `hint` follows the limit in the message.
    """
    for name, number in numbers.items():
        if number is not None and not least <= number < inf:
            raise UserError(f"{name} must be at least {least}{hint}, got {number}.")


def check_above(limit: float, **numbers: float | None) -> None:
    """Raise UserError, with its name, for the first number that is not finite or not above `limit`; None passes."""
    for name, number in numbers.items():
        if number is not None and not limit < number < inf:
            raise UserError(f"{name} must be above {limit}, got {number}.")


def check_share(**shares: float | None) -> None:
    """Raise UserError, with its name, for the first number outside [0, 1]; None passes."""
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise UserError(f"{name} must lie in [0, 1], got {share}.")


def check_between_0_and_1(**shares: float | None) -> None:
    """Raise UserError, with its name, for the first number outside (0, 1), both ends excluded; None passes."""
    for name, share in shares.items():
        if share is not None and not 0 < share < 1:
            raise UserError(f"{name} must lie in (0, 1), got {share}.")


def check_dropout(**rates: float | None) -> None:
    """Raise UserError, with its name, for the first dropout rate outside [0, 1); None passes."""
    for name, rate in rates.items():
        if rate is not None and not 0 <= rate < 1:
            raise UserError(f"{name} must lie in [0, 1), got {rate}.")


def check_choice(allowed: Iterable[str], **values: str) -> None:
    """Raise UserError, with its name and the allowed ones, for the first value that is not allowed."""
    allowed = tuple(allowed)
    for name, value in values.items():
        if value not in allowed:
            raise UserError(f"{name} {value!r} is unknown; allowed: {', '.join(allowed)}.")
