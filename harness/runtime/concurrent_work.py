"""Calls that run at the same time in threads, as far as they share no object that computes.

Results do not depend on the order.

Threads are daemons: Ctrl-C ends the command while an endpoint keeps one waiting.  Standard library only.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import UnavailableError
from common.threads import as_completed

_OURS = ("harness.", "models.", "tests.")
_DEPTH = 4  # of parts within parts: system, source, rewriter, language model


@dataclass(slots=True)
class Done:
    """The outcome of one call."""

    value: Any = None
    unavailable: str = ""  # why, if the service behind it cannot be reached
    seconds: float = 0.0
    error: BaseException | None = None


def run_together(
    calls: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]], parts: Mapping[str, object], together: bool = True
) -> dict[str, Done]:
    """Run calls, those that share no part at the same time.

    A part that has `concurrent_calls = True` may be shared: it takes calls from several threads. `UnavailableError` is
    a result; any other error is raised when all calls have ended, that of the first name.

    Args:
        calls: By name, a function and its arguments.
        parts: By name, the object that computes.
        together: False runs all of them one after the other.
    """
    done = {name: Done() for name in calls}
    groups = _groups(parts) if together else [list(calls)]

    def run(names: Sequence[str]) -> None:
        for name in names:
            function, arguments = calls[name]
            started = time.perf_counter()
            try:
                done[name].value = function(*arguments)
            except UnavailableError as error:
                done[name].unavailable = str(error)
            except BaseException as error:
                done[name].error = error
            done[name].seconds = time.perf_counter() - started

    for _ in map(run, groups) if len(groups) < 2 else as_completed(run, groups, len(groups)):
        pass
    for each in done.values():
        if each.error is not None:
            raise each.error
    return done


def _groups(parts: Mapping[str, object]) -> list[list[str]]:
    """The names, those together that share a part."""
    groups: list[tuple[list[str], set[int]]] = []
    for name, part in parts.items():
        names, ids = [name], set(_walk(part, _DEPTH))
        for group in [each for each in groups if each[1] & ids]:
            groups.remove(group)
            names, ids = group[0] + names, group[1] | ids
        groups.append((names, ids))
    return [names for names, _ in groups]


def _walk(part: object, depth: int) -> list[int]:
    """Identities of a project object and of those that it holds, but for objects that several threads may call."""
    if isinstance(part, list | tuple):
        return [each for inner in part for each in _walk(inner, depth)]
    if not type(part).__module__.startswith(_OURS) or getattr(part, "concurrent_calls", False):
        return []
    inner = [each for value in getattr(part, "__dict__", {}).values() if depth for each in _walk(value, depth - 1)]
    return [id(part), *inner]
