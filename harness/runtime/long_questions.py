"""What the models of a system cut: questions that are too long, and passages; the longest part of a text that fits."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

_DEPTH = 6  # of parts within parts, where a model is looked for
_OURS = ("harness.", "models.", "tests.")


def cutting_models(system: object) -> list[tuple[str, Any]]:
    """The models that cut questions which are too long, those with a `cut_note`, and the name of each one's class."""
    return [each for part in getattr(system, "__dict__", {}).values() for each in _cutting(part, _DEPTH)]


def cut_passages(system: object) -> list[str]:
    """A line on the inputs of which models of a system have cut a passage since they were loaded, if there are any."""
    cutting = {id(each): (name, each) for name, each in cutting_models(system) if getattr(each, "inputs_cut", 0)}
    told = [
        f"{each.inputs_cut:,} of {each.inputs_read:,} for {name} ({each.max_tokens} tokens)"
        for name, each in cutting.values()
    ]
    return [f"inputs that lost the end of a passage: {', '.join(told)}"] if told else []


def _cutting(part: object, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(part, Mapping | list | tuple):
        values = [*islice(part.values() if isinstance(part, Mapping) else part, 100)]
        for each in values if values and type(values[0]).__module__.startswith(_OURS) else ():
            yield from _cutting(each, depth)
    elif depth and type(part).__module__.startswith(_OURS):
        own = getattr(part, "__dict__", {})
        cutting = next((each for each in (part, own.get("encode")) if hasattr(each, "cut_note")), None)
        if cutting is not None:
            yield type(part).__name__, cutting
        for name, each in own.items():
            yield from _cutting(each, depth - 1) if name != "encode" else ()


def longest_fitting(least: int, most: int, fits: Callable[[int], bool]) -> int | None:
    """The greatest number from `least` to `most` that fits, found by bisection; None if `least` does not."""
    found = None
    while least <= most:
        middle = (least + most) // 2
        if fits(middle):
            found, least = middle, middle + 1
        else:
            most = middle - 1
    return found
