"""Calls that run at the same time in threads, as far as they share no object that computes.

Results do not depend on the order.

Threads are daemons: Ctrl-C ends the command while an endpoint keeps one waiting.  Standard library only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.threads import as_completed

_OURS = ("harness.", "models.", "tests.")
_DEPTH = 4  # of parts within parts: system, source, rewriter, language model


def run_together(
    calls: Mapping[str, Callable[[], Any]], parts: Mapping[str, object], together: bool = True
) -> dict[str, Any]:
    """The values of calls by name; those that share no part run at the same time.

    A part that has `concurrent_calls = True` may be shared: it takes calls from several threads. An error is raised
    when all calls have ended, that of the first name.

    Args:
        calls: By name.
        parts: By name, the object that computes.
        together: False runs all of them one after the other.
    """
    groups = _groups({name: parts[name] for name in calls}) if together else [list(calls)]

    def run(names: Sequence[str]) -> dict[str, Any]:
        return {name: _ended(calls[name]) for name in names}

    ended = map(run, groups) if len(groups) < 2 else as_completed(run, groups, len(groups))
    done = {name: result for results in ended for name, result in results.items()}
    for error in (done[name] for name in calls if isinstance(done[name], BaseException)):
        raise error
    return done


def _ended(call: Callable[[], Any]) -> Any:
    """The value of a call, or its error: an error ends no other call, whose part would still compute."""
    try:
        return call()
    except BaseException as error:
        return error


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
