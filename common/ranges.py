"""Types of numbers with a range, for the parameters that are options: the parser refuses what lies outside, and nan.

To a type checker, and in Python, they are int and float: a call from Python is not checked.
"""

from math import inf
from typing import TYPE_CHECKING, Any

from jsonargparse.typing import restricted_number_type

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
    PositiveInt = restricted_number_type("PositiveInt", int, (">", 0))
    NonNegativeInt = restricted_number_type("NonNegativeInt", int, (">=", 0))
    PositiveFloat = restricted_number_type("FinitePositiveFloat", float, [(">", 0), ("<", inf)])
    NonNegativeFloat = restricted_number_type("FiniteNonNegativeFloat", float, [(">=", 0), ("<", inf)])
    Share = restricted_number_type("ClosedUnitInterval", float, [(">=", 0), ("<=", 1)])
    PositiveShare = restricted_number_type("PositiveShare", float, [(">", 0), ("<=", 1)])
    OpenShare = restricted_number_type("OpenUnitInterval", float, [(">", 0), ("<", 1)])
    DropoutRate = restricted_number_type("DropoutRate", float, [(">=", 0), ("<", 1)])


def at_least(least: int, name: str) -> Any:
    """The type of whole numbers of at least `least`; `name` is what messages and help call it."""
    return restricted_number_type(name, int, (">=", least))


def plain(value: Any) -> Any:
    """A parsed value, also within lists, tuples and dicts, with built-in numbers.

    The types above make numbers of their own classes, which pickles and checkpoints cannot name.
    """
    if isinstance(value, list | tuple):
        return type(value)(plain(each) for each in value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    for kind in (int, float):
        if isinstance(value, kind) and hasattr(value, "_validation_fn"):
            return kind(value)
    return value
