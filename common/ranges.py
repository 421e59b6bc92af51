"""Types of options: numbers within a range (the parser refuses all others, and nan), and precisions.

To a type checker, and in Python, the numbers are int and float: a call from Python is not checked.
"""

from math import inf
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse.typing import restricted_number_type

Precision = Literal["auto", "fp32", "bf16"]  # of inference; auto: bf16 where the device has it in hardware


def ranged(name: str, kind: type, *limits: tuple[str, float]) -> Any:
    """jsonargparse's type of numbers within limits, which gives built-in numbers instead of its own.

    Its own could not be named in pickles and checkpoints.
    """
    made = restricted_number_type(name, kind, list(limits))

    def parsed(made: Any, value: Any) -> Any:
        made._validation_fn(made, value)
        return kind(value)

    made.__new__ = staticmethod(parsed)
    return made


if TYPE_CHECKING:
    PositiveInt = int
    NonNegativeInt = int
    PositiveFloat = float
    NonNegativeFloat = float
    Share = float
    PositiveShare = float
    OpenShare = float
    DropoutRate = float
else:
    PositiveInt = ranged("PositiveInt", int, (">", 0))
    NonNegativeInt = ranged("NonNegativeInt", int, (">=", 0))
    PositiveFloat = ranged("FinitePositiveFloat", float, (">", 0), ("<", inf))
    NonNegativeFloat = ranged("FiniteNonNegativeFloat", float, (">=", 0), ("<", inf))
    Share = ranged("ClosedUnitInterval", float, (">=", 0), ("<=", 1))
    PositiveShare = ranged("PositiveShare", float, (">", 0), ("<=", 1))
    OpenShare = ranged("OpenUnitInterval", float, (">", 0), ("<", 1))
    DropoutRate = ranged("DropoutRate", float, (">=", 0), ("<", 1))


def at_least(least: int, kind: type = int) -> Any:
    """The type of whole numbers, or of finite ones of kind `float`, of at least `least`."""
    limits = [(">=", least), ("<", inf)] if kind is float else [(">=", least)]
    return ranged(f"AtLeast{least}", kind, *limits)
